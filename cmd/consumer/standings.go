package main

// What the configuration comes to for the standings in Redis: a client, the
// calendar and the layouts.

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// newStore is the standings under the configured prefix. The cluster is the Kafka
// cluster's id; who only reads leaves it empty.
func newStore(cfg *config, client redis.UniversalClient, cluster string) (*ranking.Store, error) {
	calendar, err := periods.NewCalendar(cfg.timeZone, cfg.weekStart)
	if err != nil {
		return nil, fmt.Errorf("time_zone and week_start: %w", err)
	}
	kept := map[periods.Period]ranking.Period{}
	for _, p := range cfg.periods {
		if !p.enabled {
			continue
		}
		layout, err := layoutOf(cfg, p)
		if err != nil {
			return nil, fmt.Errorf("lay out %s scores: %w", p.name, err)
		}
		kept[p.name] = ranking.Period{Layout: layout, Retention: p.retention}
	}
	return ranking.New(ranking.Config{
		Client: client, Prefix: cfg.redis.prefix, Cluster: cluster,
		Periods: kept, Calendar: calendar, Timeout: cfg.redis.timeout,
	}), nil
}

// retentions is how long after its end a window of each enabled period lives.
func retentions(cfg *config) map[periods.Period]time.Duration {
	all := map[periods.Period]time.Duration{}
	for _, p := range cfg.periods {
		if p.enabled {
			all[p.name] = p.retention
		}
	}
	return all
}
