package ranking

// A refusal for maxmemory, with how much is used.

import (
	"context"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// room is how much memory the server with the ledger uses and may use; 0 if it doesn't
// report it.
func (s *Store) room(ctx context.Context) (used, most int64) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return 0, 0 // nothing rests on it
	}
	m, _, _ := redisconn.MemoryOf(ctx, server) // likewise
	return m.Used, m.Max
}

// withRoom adds to a refusal for maxmemory how much is used; any other error is as it was.
func (s *Store) withRoom(ctx context.Context, err error) error {
	if !redisconn.IsFull(err) {
		return err
	}
	full := &ledger.FullError{Err: err}
	full.Used, full.Max = s.room(ctx)
	return full
}
