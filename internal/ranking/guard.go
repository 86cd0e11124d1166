package ranking

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// What the ledger rests on outside of this code: that Redis keeps or loses
// scores and ledger together, and runs every command that a script needs.

// tryScript uses every command of the scripts on scratch keys: a right that is
// missing is found here, and not in the middle of a piece.
var tryScript = newScript(`
local call, hash, set, text = redis.call, KEYS[1], KEYS[2], KEYS[3]
local now = call('TIME')
call('HSET', hash, 'f', 'v')
call('HGET', hash, 'f')
call('HLEN', hash)
call('HGETALL', hash)
call('HDEL', hash, 'g')
call('SET', text, 'v')
call('GET', text)
call('EXISTS', text)
call('ZADD', set, 1, 'm')
call('ZMSCORE', set, 'm')
call('ZSCORE', set, 'm')
call('ZCARD', set)
call('ZREVRANK', set, 'm')
call('ZREVRANGE', set, 0, 0, 'WITHSCORES')
for i = 1, 3 do call('PEXPIREAT', KEYS[i], string.format('%.0f', now[1] * 1000 + 60000)) end
return {'ok'}
`)

// EvictionError says that Redis may drop single keys.
type EvictionError struct {
	Server string
	Policy string // empty where neither CONFIG nor INFO tells
}

func (e *EvictionError) Error() string {
	if e.Policy == "" {
		return fmt.Sprintf("Redis %s doesn't tell its maxmemory-policy (CONFIG GET and INFO memory give none): "+
			"if it is noeviction, say so by redis.assume_noeviction: true", e.Server)
	}
	return fmt.Sprintf("Redis %s has maxmemory-policy %s and may drop a board or the ledger alone: "+
		"set it to noeviction (CONFIG SET maxmemory-policy noeviction)", e.Server, e.Policy)
}

// RightsError says which command can't be used.
type RightsError struct{ Err error }

func (e *RightsError) Error() string {
	return fmt.Sprintf("Redis doesn't let this user run what the scripts need: %v", e.Err)
}
func (e *RightsError) Unwrap() error { return e.Err }

// Try checks that every master keeps what it is given (unless assumed), and that
// this user may run all that the scripts run.
func (s *Store) Try(ctx context.Context, assumeNoEviction bool) error {
	if !assumeNoEviction {
		if err := s.TryEviction(ctx); err != nil {
			return err
		}
	}
	args := []any{nil, nil, nil, s.keys.scratch("hash"), s.keys.scratch("set"), s.keys.scratch("text")}
	_, err := s.run(ctx, tryScript, 3, args)
	switch {
	case missingRight(err):
		return &RightsError{err}
	case err != nil:
		return fmt.Errorf("try the commands of the scripts: %w", err)
	}
	return nil
}

// TryEviction checks that no master evicts keys. It is asked again after every
// reconnect: a failover may have brought another server's configuration.
func (s *Store) TryEviction(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, func(ctx context.Context, m *redis.Client) error {
			return tryEviction(ctx, m, m.Options().Addr)
		})
	case *redis.Client:
		return tryEviction(ctx, c, c.Options().Addr)
	default:
		return tryEviction(ctx, s.client, "")
	}
}

func tryEviction(ctx context.Context, c redis.Cmdable, server string) error {
	policy, err := policyByConfig(ctx, c)
	if err != nil || policy == "" {
		if Unreachable(err) || err != nil && Meaning(err) == ledger.Retry {
			return fmt.Errorf("ask Redis for its maxmemory-policy: %w", err)
		}
		if policy, err = policyByInfo(ctx, c); err != nil {
			return fmt.Errorf("ask Redis for its maxmemory-policy: %w", err)
		}
	}
	if policy != "noeviction" {
		return &EvictionError{Server: server, Policy: policy}
	}
	return nil
}

func policyByConfig(ctx context.Context, c redis.Cmdable) (string, error) {
	all, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
	return all["maxmemory-policy"], err
}

func policyByInfo(ctx context.Context, c redis.Cmdable) (string, error) {
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		if !Unreachable(err) && Meaning(err) != ledger.Retry {
			return "", nil // it may not be asked: the operator has to say
		}
		return "", err
	}
	for line := range strings.Lines(info) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return p, nil
		}
	}
	return "", nil
}
