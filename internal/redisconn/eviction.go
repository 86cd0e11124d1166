package redisconn

// The check that a server does not evict keys.

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// EvictionError reports that Redis may evict single keys.
type EvictionError struct {
	Server string // empty for the server of a new connection
	Policy string // empty if neither CONFIG nor INFO reports it
}

func (e *EvictionError) Error() string {
	server := strings.TrimSpace("Redis " + e.Server)
	if e.Policy == "" {
		return fmt.Sprintf("%s doesn't tell its maxmemory-policy (CONFIG GET and INFO memory give none): "+
			"if it is noeviction, set redis.assume_noeviction: true", server)
	}
	return fmt.Sprintf("%s has maxmemory-policy %s and may drop a board or the ledger alone: "+
		"set it to noeviction (CONFIG SET maxmemory-policy noeviction)", server, e.Policy)
}

// CheckEviction checks that the server of a new connection evicts no keys. It is called before the first
// use, since after a failover the server may have another configuration. assumeNoEviction accepts a server
// that does not report its policy; a server that reports another policy is always refused.
func CheckEviction(ctx context.Context, conn *redis.Conn, assumeNoEviction bool) error {
	_, err := checkEviction(ctx, conn, "", assumeNoEviction)
	return err
}

// CheckEvictions checks every master like CheckEviction. assumed reports whether a master was accepted
// without reporting its policy.
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

// checkEviction returns the policy of an accepted server; empty if the server does not report it.
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

// evictionPolicy returns the server's maxmemory-policy; empty if it is not available. It tries INFO first,
// which does not require the right to CONFIG, a command that also shows passwords.
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
