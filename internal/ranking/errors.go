package ranking

// Errors: the shard that a call failed on, its server, and how to handle it.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// ShardError is an error of a call to one of several shards.
type ShardError struct {
	Shard int // from 0
	Of    ledger.Shards
	// Addr is the address of the shard's server, host:port; in a cluster that of the master of the shard's
	// slot, as far as the client knows. It is empty if the client doesn't know it.
	Addr string
	Err  error
}

func (e *ShardError) Error() string { return fmt.Sprintf("%s: %v", e.Name(), e.Err) }
func (e *ShardError) Unwrap() error { return e.Err }

// Name returns the shard's name for messages.
func (e *ShardError) Name() string { return ShardName(e.Shard, e.Of, e.Addr) }

// ShardName names a shard in messages: shard 3 of 12 on 10.0.0.7:6379. Shards are counted from 0, as in
// their keys.
func ShardName(shard int, of ledger.Shards, addr string) string {
	name := fmt.Sprintf("shard %d of %d", shard, of)
	if addr != "" {
		name += " on " + addr
	}
	return name
}

// explain adds to the error of a call which right is missing, if one is, and the shard, if there are
// several. script is the source of the script that was called, if any.
func (s *Store) explain(err error, script string) error {
	if err == nil {
		return nil
	}
	return s.OfShard(redisconn.NameRight(err, script, s.prefix))
}

// OfShard adds the shard to an error if there are several shards.
func (s *Store) OfShard(err error) error {
	if err == nil || s.shards <= 1 {
		return err
	}
	if _, named := errors.AsType[*ShardError](err); named {
		return err
	}
	e := &ShardError{Shard: s.shard, Of: s.shards, Err: err}
	if !strings.Contains(err.Error(), "CLUSTERDOWN") { // no node serves the slot, or the client doesn't know it
		e.Addr = s.Addr()
	}
	return e
}

// Addr returns the shard's server, host:port, as far as the client knows, without a call. It is empty
// behind Sentinels, and for a cluster that the client never reached.
func (s *Store) Addr() string {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		ended, cancel := context.WithCancel(context.Background())
		cancel() // else a client that knows no master would fetch the slots now
		if node, err := c.MasterForKey(ended, s.keys.Ledger()); err == nil {
			return node.Options().Addr
		}
	case *redis.Client:
		if addr := c.Options().Addr; !redisconn.ViaFailover(c) {
			return addr
		}
	}
	return ""
}

// Classify returns how to handle an error of a store. It classifies the store's own errors by type, and
// Redis's errors with redisconn.Classify. An error without an answer from Redis may be temporary: the
// outcome is unknown, and the ledger makes a repeated call harmless.
func Classify(err error) ledger.Verdict {
	if _, ok := errors.AsType[*SchemaError](err); ok {
		return ledger.Halt
	}
	if errors.Is(err, errHeldUp) {
		return ledger.Retry
	}
	if _, ok := errors.AsType[*fault](err); ok {
		return ledger.Halt
	}
	return redisconn.Classify(err)
}

// fault is a bug in this program or in a server that answers in Redis's place. A repeated call can't help.
type fault struct{ what string }

func (f *fault) Error() string { return f.what }

// Faultf returns an error that a repeated call can't fix: a bug in this program or in a server that answers
// in Redis's place.
func Faultf(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }

// Adds the memory in use to an error about maxmemory.

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
