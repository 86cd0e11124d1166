package clients

// What the configuration comes to for the standings in Redis: a client, the
// calendar and the layouts.

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// NewStore is the standings under the configured prefix. The cluster is the Kafka
// cluster's id; who only reads leaves it empty.
func NewStore(cfg *config.Config, client redis.UniversalClient, cluster string) (*ranking.Store, error) {
	calendar, err := cfg.Calendar()
	if err != nil {
		return nil, err
	}
	kept := map[periods.Period]ranking.Period{}
	for _, p := range cfg.Periods {
		if !p.Enabled {
			continue
		}
		layout, err := cfg.Layout(p)
		if err != nil {
			return nil, fmt.Errorf("lay out %s scores: %w", p.Name, err)
		}
		kept[p.Name] = ranking.Period{Layout: layout, Retention: p.Retention}
	}
	return ranking.New(ranking.Config{
		MaxWindows: cfg.MaxWindows,
		Client:     client, Prefix: cfg.Redis.Prefix, Cluster: cluster,
		Periods: kept, Calendar: calendar, Timeout: cfg.Redis.Timeout,
	}), nil
}
