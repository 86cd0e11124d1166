//go:build !nodocker

package main

import (
	"context"

	"github.com/standings/standings/test/testenv/containers"
)

// containersSocket starts a service that starts containers. end removes the containers that are left.
func containersSocket(ctx context.Context) (socket string, end func(), err error) {
	service, err := containers.Listen(ctx)
	if err != nil {
		return "", nil, err
	}
	return service.Socket, service.Close, nil
}
