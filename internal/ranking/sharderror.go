package ranking

// Which of several shards a call failed on, and where that is.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// ShardError is an error of one of several shards.
type ShardError struct {
	Shard int // from 0
	Of    ledger.Shards
	// Addr is the server that has the shard, host:port; of a cluster the master of its slot,
	// as far as the client knows. It is empty if that isn't known.
	Addr string
	Err  error
}

func (e *ShardError) Error() string { return fmt.Sprintf("%s: %v", e.Name(), e.Err) }
func (e *ShardError) Unwrap() error { return e.Err }

// Name is its shard, for people.
func (e *ShardError) Name() string { return ShardName(e.Shard, e.Of, e.Addr) }

// ShardName is a shard for people: shard 3 of 12 on 10.0.0.7:6379. Shards are counted from 0, as
// in their keys.
func ShardName(shard int, of ledger.Shards, addr string) string {
	name := fmt.Sprintf("shard %d of %d", shard, of)
	if addr != "" {
		name += " on " + addr
	}
	return name
}

// explain is the error of a call: it names a right that is missing, and the shard where there
// are several. The script is the one that was called, if any.
func (s *Store) explain(err error, script string) error {
	if err == nil {
		return nil
	}
	return s.ofShard(redisconn.NameRight(err, script, s.prefix))
}

// ofShard names the shard of an error where there are several.
func (s *Store) ofShard(err error) error {
	if err == nil || s.shards <= 1 {
		return err
	}
	if _, named := errors.AsType[*ShardError](err); named {
		return err
	}
	e := &ShardError{Shard: s.shard, Of: s.shards, Err: err}
	if !strings.Contains(err.Error(), "CLUSTERDOWN") { // nobody serves the slot, or nobody knows who
		e.Addr = s.Addr()
	}
	return e
}

// Addr is the server that has the shard, host:port, as far as the client knows; it asks nobody.
// Behind Sentinels, and of a cluster that was never reached, it is empty.
func (s *Store) Addr() string {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		ended, cancel := context.WithCancel(context.Background())
		cancel() // a client that knows no master yet would ask for them now
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
