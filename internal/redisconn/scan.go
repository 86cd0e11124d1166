package redisconn

// SCAN loops across a failover.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// OnOneServer calls do, which runs a loop over SCAN cursors, and repeats it if a failover changed the
// server meanwhile. A cursor is valid only in the process that returned it; in another process the loop
// would miss members. A failover may cause no failed call, since a connection that is found closed between
// two calls is opened again.
//
// If INFO is not available, the server is assumed to be the same. timeout limits each call of INFO; server
// returns the client to ask.
func OnOneServer(ctx context.Context, timeout time.Duration, server func(context.Context) (redis.Cmdable, error), do func() error) error {
	was, err := runID(ctx, timeout, server)
	if err != nil {
		return err
	}
	for {
		if err := do(); err != nil {
			return err
		}
		is, err := runID(ctx, timeout, server)
		if err != nil || is == was {
			return err
		}
		was = is
	}
}

// runID returns the id of the server's process; empty if the server does not report it.
func runID(ctx context.Context, timeout time.Duration, server func(context.Context) (redis.Cmdable, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := server(ctx)
	if err != nil {
		return "", err
	}
	fields, err := info(ctx, c, "server")
	return fields["run_id"], err
}
