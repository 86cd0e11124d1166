package ranking

// Scans over a failover.

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// steady does what goes by a scan's cursors on the server that has the ledger, as
// steadily does.
func (s *Store) steady(ctx context.Context, do func() error) error {
	return s.steadily(ctx, func() (redis.Cmdable, error) { return s.master(ctx) }, do)
}

// steadily does what goes by a scan's cursors, and again where another server answers at
// its end than did at its begin. A cursor is good for the process that gave it: with
// another's, members would be left out. No call need fail for that, since a connection
// that is found closed between two calls is opened anew.
//
// A server that mayn't be asked who it is (INFO) is taken for the same one.
func (s *Store) steadily(ctx context.Context, server func() (redis.Cmdable, error), do func() error) error {
	was, err := s.runID(ctx, server)
	if err != nil {
		return err
	}
	for {
		if err := do(); err != nil {
			return err
		}
		is, err := s.runID(ctx, server)
		if err != nil || is == was {
			return err
		}
		was = is
	}
}

// runID is the name that a server's process has given itself; empty where it isn't told.
func (s *Store) runID(ctx context.Context, server func() (redis.Cmdable, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c, err := server()
	if err != nil {
		return "", err
	}
	told, err := info(ctx, c, "server")
	return told["run_id"], err
}
