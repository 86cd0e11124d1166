package ranking

// How much memory the servers use, of how much they may.

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// Memory is the memory of one server, in bytes.
type Memory struct {
	Server    string // host:port; "master" behind Sentinels
	Used, Max int64  // Max is its maxmemory, 0 for no limit
}

// Memories is the memory of every master. A server that doesn't report it, for a missing
// right to INFO, isn't in the answer.
func (s *Store) Memories(ctx context.Context) ([]Memory, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var mu sync.Mutex
	var all []Memory
	err := EachMaster(ctx, s.client, func(ctx context.Context, c *redis.Client) error {
		server := c.Options().Addr
		if server == "FailoverClient" {
			server = "master"
		}
		used, most, ok, err := memoryOf(ctx, c)
		if ok {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, Memory{server, used, most})
		}
		return err
	})
	return all, asRights(err, "", s.prefix)
}

// memoryOf is what one server reports; ok is false where it doesn't.
func memoryOf(ctx context.Context, c redis.Cmdable) (used, most int64, ok bool, err error) {
	told, err := info(ctx, c, "memory")
	if err != nil {
		return 0, 0, false, err
	}
	used, err = strconv.ParseInt(told["used_memory"], 10, 64)
	if err != nil {
		return 0, 0, false, nil //nolint:nilerr // it isn't reported
	}
	most, _ = strconv.ParseInt(told["maxmemory"], 10, 64) // some hosts leave it out
	return used, most, true, nil
}

// room is how much memory the server with the ledger uses and may use; 0 where it doesn't
// report it.
func (s *Store) room(ctx context.Context) (used, most int64) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	server, err := s.master(ctx)
	if err != nil {
		return 0, 0 // nothing rests on it
	}
	used, most, _, _ = memoryOf(ctx, server) // likewise
	return used, most
}

// withRoom adds to a refusal for maxmemory how much is used; any other error is as it was.
func (s *Store) withRoom(ctx context.Context, err error) error {
	if !IsFull(err) {
		return err
	}
	full := &ledger.FullError{Err: err}
	full.Used, full.Max = s.room(ctx)
	return full
}
