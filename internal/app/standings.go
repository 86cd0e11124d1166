package app

// The standings in Redis, as configured.

import (
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// NewBoards returns the standings under the configured prefix, of all shards. cluster is the Kafka cluster's
// id; readers leave it empty.
func NewBoards(cfg *config.Config, client redis.UniversalClient, cluster string) (*boards.Boards, error) {
	calendar, err := cfg.Calendar()
	if err != nil {
		return nil, err
	}
	kept := map[periods.Period]ranking.Period{}
	for _, p := range cfg.Kept() {
		rule, err := cfg.Rule(p)
		if err != nil {
			return nil, err
		}
		layout, err := cfg.Layout(*p)
		if err != nil {
			return nil, fmt.Errorf("lay out %s scores: %w", p.Name, err)
		}
		kept[p.Name] = ranking.Period{Rule: rule, Layout: layout, Retention: p.Retention}
	}
	ruled, err := rankedBoards(cfg)
	if err != nil {
		return nil, err
	}
	return boards.New(ranking.Config{
		MaxWindows: cfg.MaxWindows,
		Client:     client, Prefix: cfg.Redis.Prefix, Cluster: cluster, Shards: ledger.Shards(cfg.Redis.Shards),
		Periods: kept, Boards: ruled, Lists: cfg.Lists(), Allows: cfg.Allows, Calendar: calendar, Timeout: cfg.Redis.Timeout,
	}), nil
}

// rankedBoards returns the boards of the section for the standings; nil if all of them have the default rule.
func rankedBoards(cfg *config.Config) (map[string]*ranking.Ruled, error) {
	all, err := cfg.Ruled()
	if err != nil || !slices.ContainsFunc(all, func(b config.Board) bool { return b.Rule != nil }) {
		return nil, err
	}
	boards := map[string]*ranking.Ruled{}
	for _, b := range all {
		if boards[b.Name] = nil; b.Rule != nil {
			boards[b.Name] = &ranking.Ruled{Rule: b.Rule, Layouts: b.Layouts}
		}
	}
	return boards, nil
}
