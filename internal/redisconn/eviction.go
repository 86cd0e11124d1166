package redisconn

// Whether a server may drop single keys.

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// EvictionError says that Redis may drop single keys.
type EvictionError struct {
	Server string // empty for the one behind a new connection
	Policy string // empty if neither CONFIG nor INFO has it
}

func (e *EvictionError) Error() string {
	server := strings.TrimSpace("Redis " + e.Server)
	if e.Policy == "" {
		return fmt.Sprintf("%s doesn't tell its maxmemory-policy (CONFIG GET and INFO memory give none): "+
			"if it is noeviction, say so by redis.assume_noeviction: true", server)
	}
	return fmt.Sprintf("%s has maxmemory-policy %s and may drop a board or the ledger alone: "+
		"set it to noeviction (CONFIG SET maxmemory-policy noeviction)", server, e.Policy)
}

// CheckEviction checks that the server behind a new connection evicts no keys, before it is
// used: a failover may have brought another server's configuration. assumeNoEviction answers
// for a server that doesn't report its policy; one that reports a wrong one is refused.
func CheckEviction(ctx context.Context, conn *redis.Conn, assumeNoEviction bool) error {
	_, err := checkEviction(ctx, conn, "", assumeNoEviction)
	return err
}

// CheckEvictions checks every master as CheckEviction does. assumed reports whether one was
// taken without reporting its policy.
func CheckEvictions(ctx context.Context, client redis.UniversalClient, assumeNoEviction bool) (assumed bool, err error) {
	var unreported atomic.Bool
	err = EachMaster(ctx, client, func(ctx context.Context, c *redis.Client) error {
		name := c.Options().Addr
		if ViaFailover(c) {
			name = "(the master that the Sentinels name)"
		}
		policy, err := checkEviction(ctx, c, name, assumeNoEviction)
		if err == nil && policy == "" {
			unreported.Store(true)
		}
		return err
	})
	return unreported.Load(), NameRight(err, "", "")
}

// checkEviction returns the policy of a server that is taken; empty if it isn't reported.
func checkEviction(ctx context.Context, c redis.Cmdable, server string, assumeNoEviction bool) (string, error) {
	policy, err := evictionPolicy(ctx, c)
	if err != nil {
		return "", fmt.Errorf("ask %s for its maxmemory-policy: %w", strings.TrimSpace("Redis "+server), err)
	}
	if policy == "noeviction" || policy == "" && assumeNoEviction {
		return policy, nil
	}
	return "", &EvictionError{Server: server, Policy: policy}
}

// evictionPolicy is the server's maxmemory-policy; empty if it may not be asked.
// INFO is asked first: it needs no right to CONFIG, which shows passwords, too.
func evictionPolicy(ctx context.Context, c redis.Cmdable) (string, error) {
	fields, err := info(ctx, c, "memory")
	if policy, ok := fields["maxmemory_policy"]; ok || err != nil {
		return policy, err
	}
	all, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil && !unavailable(err) {
		return "", err
	}
	return all["maxmemory-policy"], nil
}
