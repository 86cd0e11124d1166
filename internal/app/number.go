package app

// How many shards there are: by Redis, once a reshard has changed that.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
)

// Recorded is the configuration with the number of shards that Redis has recorded; false if there is no record.
func Recorded(ctx context.Context, cfg *config.Config, client redis.UniversalClient) (*config.Config, bool, error) {
	number, err := ranking.ReadNumber(ctx, client, cfg.Redis.Prefix, cfg.Redis.Timeout)
	if err != nil || number.Shards == 0 {
		return cfg, false, err
	}
	numbered := *cfg
	numbered.Redis.Shards = int64(number.Shards)
	return &numbered, true, nil
}

// Numbered is Recorded, and the configuration as it was if Redis doesn't answer.
func Numbered(ctx context.Context, cfg *config.Config, client redis.UniversalClient) *config.Config {
	numbered, _, _ := Recorded(ctx, cfg, client)
	return numbered
}

// OtherNumber says that Redis has another number of shards than a configuration.
func OtherNumber(cfg *config.Config, shards int64) string {
	return fmt.Sprintf("redis.shards is %d in the configuration but %d in Redis since a reshard, and Redis takes precedence: set redis.shards to %d", cfg.Redis.Shards, shards, shards)
}
