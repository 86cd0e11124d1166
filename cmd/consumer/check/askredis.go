package check

// Asking Redis for what check judges. Nothing that stays is written.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ranking"
)

func gatherRedis(ctx context.Context, r *clients.Reader) *redisFacts {
	cfg := r.Config
	f := &redisFacts{kind: "a single server", db: cfg.Redis.DB, group: cfg.Kafka.Group}
	if _, ok := r.Client.(*redis.ClusterClient); ok {
		f.kind = "a cluster's master"
	} else if cfg.Redis.Sentinel.Master != "" {
		f.kind = "the Sentinels' master " + cfg.Redis.Sentinel.Master
	}
	state, err := r.Store.State(ctx)
	f.noState = clients.ExplainRedis(ctx, err, cfg)
	_, misfit := errors.AsType[*ranking.MisfitError](f.noState)
	switch {
	case misfit, ranking.Unreachable(err), errors.Is(err, context.DeadlineExceeded):
		f.err = f.noState
		return f
	case err == nil:
		f.state = &state
	}
	var mu sync.Mutex
	err = ranking.EachMaster(ctx, r.Client, func(ctx context.Context, c *redis.Client) error {
		m := askServer(ctx, cfg, c)
		mu.Lock()
		defer mu.Unlock()
		f.servers = append(f.servers, m)
		return nil
	})
	if err != nil {
		f.err = clients.ExplainRedis(ctx, err, cfg)
		return f
	}
	slices.SortFunc(f.servers, func(x, y serverFacts) int { return strings.Compare(x.address, y.address) })
	if len(f.servers) == 1 {
		f.servers[0].address = ""
	}
	f.rights = r.Store.TryCommands(ctx)
	if f.state != nil && f.state.Windows > 0 {
		f.lost, f.lostErr = r.Store.Lost(ctx)
		f.lostErr = clients.ExplainRedis(ctx, f.lostErr, cfg)
	}
	return f
}

// asked are the settings that are looked at. Each is asked for by itself: Redis 6.2
// takes one name a call.
var asked = []string{
	"maxmemory-policy", "save", "appendfsync", "stop-writes-on-bgsave-error", "lazyfree-lazy-expire",
	"lazyfree-lazy-server-del", "min-replicas-to-write",
}

// askServer asks one master, all within redis.timeout.
func askServer(ctx context.Context, cfg *config.Config, c *redis.Client) serverFacts {
	ctx, cancel := context.WithTimeout(ctx, cfg.Redis.Timeout)
	defer cancel()
	m := serverFacts{address: c.Options().Addr}
	conn := c.Conn()
	defer conn.Close() //nolint:errcheck // it goes back to its pool
	if err := m.askClock(ctx, conn); err != nil {
		m.err = clients.ExplainRedis(ctx, err, cfg)
		return m
	}
	m.eviction = ranking.TryEviction(ctx, conn, cfg.Redis.AssumeNoeviction)
	if text, err := conn.Info(ctx).Result(); err == nil {
		m.info = map[string]string{}
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				m.info[key] = value
			}
		}
	}
	m.settings = map[string]string{}
	for _, name := range asked {
		all, err := conn.ConfigGet(ctx, name).Result()
		if err != nil {
			break // no right to the first is none to the others
		}
		if value, ok := all[name]; ok {
			m.settings[name] = value
		}
	}
	return m
}

// clockTries is how often the clock is asked for: the quickest answer says most.
const clockTries = 3

func (m *serverFacts) askClock(ctx context.Context, conn *redis.Conn) error {
	for try := range clockTries {
		asked := time.Now()
		theirs, err := conn.Time(ctx).Result()
		if err != nil {
			return fmt.Errorf("ask for the time: %w", err)
		}
		half := time.Since(asked) / 2
		if try == 0 || half < m.within {
			m.within, m.ahead = half, theirs.Sub(asked.Add(half))
		}
	}
	return nil
}
