package ranking

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// What the ledger rests on outside of this code: that Redis keeps or loses
// scores and ledger together, and runs every command that a script needs.

// EvictionError says that Redis may drop single keys.
type EvictionError struct {
	Server string // empty for the one behind a new connection
	Policy string // empty where neither CONFIG nor INFO tells
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

// Try checks that every master keeps what it is given, and that this user may run
// all that the scripts run, by EVAL and by EVALSHA. assumeNoEviction answers for a
// server that doesn't tell its policy; one that tells a wrong one is refused.
func (s *Store) Try(ctx context.Context, assumeNoEviction bool) error {
	if err := s.TryEviction(ctx, assumeNoEviction); err != nil {
		return err
	}
	return s.TryCommands(ctx)
}

// TryCommands checks that this user may run all that the scripts run, by EVAL and by
// EVALSHA, on scratch keys of its own that are gone when it returns. A right that is
// missing is *RightsError.
func (s *Store) TryCommands(ctx context.Context) error {
	return s.tryAll(ctx, tryScript, "hash", "set", "text")
}

// TryRebuild checks that this user may run all that a rebuild runs, as TryCommands does.
func (s *Store) TryRebuild(ctx context.Context) error {
	return s.tryAll(ctx, tryRebuildScript, "hash", "set", "text", "other")
}

func (s *Store) tryAll(ctx context.Context, sc script, scratch ...string) error {
	for _, way := range []struct{ command, script string }{
		{"eval", sc.source}, {"evalsha", sc.sha},
	} {
		err := s.try(ctx, way.command, way.script, sc.source, scratch)
		if _, rights := errors.AsType[*RightsError](err); rights {
			return err
		}
		if err != nil {
			return fmt.Errorf("try the commands of the scripts (they need Redis 6.2 or later, or Valkey) by %s: %w", way.command, err)
		}
	}
	return s.tryRedirected(ctx)
}

// tryRedirected checks the right to be sent to another node while a slot moves.
func (s *Store) tryRedirected(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		return asRights(c.Do(ctx, "asking").Err(), "", s.prefix)
	})
}

func (s *Store) try(ctx context.Context, command, script, source string, scratch []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args := []any{command, script, len(scratch)}
	for _, name := range scratch {
		args = append(args, s.keys.scratch(name))
	}
	return asRights(s.client.Do(ctx, args...).Err(), source, s.prefix)
}

// TryEviction checks that no master evicts keys. It is asked again after every
// reconnect: a failover may have brought another server's configuration.
// assumeNoEviction answers for a server that doesn't tell.
func (s *Store) TryEviction(ctx context.Context, assumeNoEviction bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	try := func(ctx context.Context, c *redis.Client) error {
		name := c.Options().Addr
		if name == "FailoverClient" {
			name = "(the master that the Sentinels name)"
		}
		policy, err := tryEviction(ctx, c, name, assumeNoEviction)
		if err == nil && policy == "" {
			s.trusted.Store(true)
		}
		return err
	}
	return asRights(EachMaster(ctx, s.client, try), "", s.prefix)
}

// EachMaster calls do with a client of every server that takes writes, of a cluster
// at once.
func EachMaster(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("find the masters of Redis: a client of type %T doesn't tell them", client)
}

// Trusted reports whether a server was taken without telling its maxmemory-policy.
func (s *Store) Trusted() bool { return s.trusted.Load() }

// evictionPolicy is the server's maxmemory-policy; empty where it may not be asked.
// INFO is asked first: it needs no right to CONFIG, which tells passwords, too.
func evictionPolicy(ctx context.Context, c redis.Cmdable) (string, error) {
	told, err := info(ctx, c, "memory")
	if policy, ok := told["maxmemory_policy"]; ok || err != nil {
		return policy, err
	}
	all, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil && !forbidden(err) {
		return "", err
	}
	return all["maxmemory-policy"], nil
}

// info is what INFO tells in a section, by name; nothing where it may not be asked.
// (go-redis's InfoMap panics on an answer without a section's head.)
func info(ctx context.Context, c redis.Cmdable, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil && !forbidden(err) {
		return nil, err
	}
	told := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			told[name] = value
		}
	}
	return told, nil
}

// forbidden reports whether a server has answered that a command isn't there for
// us: renamed away, not offered by the host, or not this user's. Credentials that are
// missing or wrong are something else, and so is a database that there isn't.
func forbidden(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && Meaning(err) == ledger.Halt && (&Dial{}).refusal(cause(reply.Error())) == ""
}

// TryEviction checks the server behind a new connection, before it is used.
func TryEviction(ctx context.Context, conn *redis.Conn, assumeNoEviction bool) error {
	_, err := tryEviction(ctx, conn, "", assumeNoEviction)
	return err
}

func tryEviction(ctx context.Context, c redis.Cmdable, server string, assumeNoEviction bool) (string, error) {
	policy, err := evictionPolicy(ctx, c)
	if err != nil {
		return "", fmt.Errorf("ask %s for its maxmemory-policy: %w", strings.TrimSpace("Redis "+server), err)
	}
	if policy == "noeviction" || policy == "" && assumeNoEviction {
		return policy, nil
	}
	return "", &EvictionError{Server: server, Policy: policy}
}
