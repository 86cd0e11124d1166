package redisconn

// Scans over a failover.

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// OnOneServer does what goes by a scan's cursors, and again if another server answers at
// its end than did at its begin. A cursor is good for the process that gave it: with
// another's, members would be left out. No call need fail for that, since a connection
// that is found closed between two calls is opened anew.
//
// A server that mayn't be asked who it is (INFO) is taken for the same one. timeout bounds
// each of these questions; server says whom to ask.
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

// runID is the name that a server's process has given itself; empty if it isn't reported.
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
