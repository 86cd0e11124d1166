package ranking

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// Checks of what the ledger relies on outside this code: Redis keeps or loses scores and ledger together,
// and runs every command that a script needs.

// Try checks that no master evicts keys, and that this Redis user may run all commands of the scripts, by
// EVAL and by EVALSHA. With assumeNoEviction it accepts a server that doesn't report its policy; a server
// that reports a wrong policy is always refused.
func (s *Store) Try(ctx context.Context, assumeNoEviction bool) error {
	if err := s.TryEviction(ctx, assumeNoEviction); err != nil {
		return err
	}
	return s.TryCommands(ctx)
}

// TryCommands checks that this Redis user may run all commands of the scripts, by EVAL and by EVALSHA. It
// uses scratch keys, which are gone when it returns. If a right is missing, the error is a
// *redisconn.RightsError.
func (s *Store) TryCommands(ctx context.Context) error {
	return s.TryUsed(ctx, used)
}

// The commands that scripts use in a consumer, a rebuild and a reshard; those that create the keys come
// first.
var (
	used = []string{
		"TIME", "HSET", "SET", "ZADD", "PEXPIREAT", "EXISTS", "GET", "HDEL", "HGET", "HGETALL", "HLEN", "HMGET", "HSCAN", "PTTL",
		"ZCARD", "ZMSCORE", "ZREM", "ZREVRANGE", "ZREVRANK", "ZSCAN", "ZSCORE",
	}
	UsedByRebuild = []string{
		"TIME", "HSET", "SET", "ZADD", "PEXPIREAT", "EXISTS", "GET", "HDEL", "HGET", "HGETALL", "HLEN", "HMGET", "HSCAN", "PTTL",
		"ZCARD", "ZMSCORE", "ZREM", "ZSCAN", "ZSCORE", "RENAME", "UNLINK",
	}
	UsedByReshard = []string{
		"TIME", "HSET", "SET", "ZADD", "PEXPIREAT", "PERSIST", "EXISTS", "GET", "HGETALL", "HLEN", "HSCAN", "PTTL", "ZCARD", "ZREVRANGE", "UNLINK",
	}
)

// TryUsed runs commands on scratch keys, like TryCommands. Commands that create the keys must come first.
func (s *Store) TryUsed(ctx context.Context, commands []string) error {
	sc := lua.Try
	for _, way := range []struct{ command, script string }{
		{"eval", sc.Source}, {"evalsha", sc.SHA},
	} {
		err := s.try(ctx, way.command, way.script, sc.Source, commands)
		if _, rights := errors.AsType[*redisconn.RightsError](err); rights {
			return err
		}
		if err != nil {
			return fmt.Errorf("try the commands of the scripts (they need Redis 6.2 or later, or Valkey) by %s: %w", way.command, err)
		}
	}
	return s.tryRedirected(ctx)
}

// tryRedirected checks the right to ASKING, which a client sends if a slot is being moved to another node.
func (s *Store) tryRedirected(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		return redisconn.NameRight(c.Do(ctx, "asking").Err(), "", s.prefix)
	})
}

func (s *Store) try(ctx context.Context, command, script, source string, commands []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args := []any{command, script, 4}
	for _, name := range []string{"hash", "set", "other", "text"} {
		args = append(args, s.keys.scratch(name))
	}
	for _, used := range commands {
		args = append(args, used)
	}
	return s.explain(s.client.Do(ctx, args...).Err(), source)
}

// TryEviction checks that no master evicts keys. With assumeNoEviction it accepts a server that doesn't
// report its policy.
func (s *Store) TryEviction(ctx context.Context, assumeNoEviction bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	assumed, err := redisconn.CheckEvictions(ctx, s.client, assumeNoEviction)
	if assumed {
		s.trusted.Store(true)
	}
	return err
}

// Trusted reports whether a server was accepted without reporting its maxmemory-policy.
func (s *Store) Trusted() bool { return s.trusted.Load() }
