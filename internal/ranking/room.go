package ranking

// Adds the memory in use to an error about maxmemory.

import (
	"context"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// room returns how much memory the server with the ledger uses and may use, in bytes; 0 if the server
// doesn't report it.
func (s *Store) room(ctx context.Context) (used, most int64) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return 0, 0 // the numbers are only informative
	}
	m, _, _ := redisconn.MemoryOf(ctx, server) // likewise
	return m.Used, m.Max
}

// withRoom adds the memory in use to an error about maxmemory, and returns any other error unchanged.
func (s *Store) withRoom(ctx context.Context, err error) error {
	if !redisconn.IsFull(err) {
		return err
	}
	full := &ledger.FullError{Err: err}
	full.Used, full.Max = s.room(ctx)
	return full
}
