package app

// How many shards there are: by Redis, once a reshard has changed that.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
)

// Numbered is the configuration with the number of shards that Redis has recorded. Where there
// is no record, or no answer, it is as it was.
func Numbered(ctx context.Context, cfg *config.Config, client redis.UniversalClient) *config.Config {
	number, err := ranking.ReadNumber(ctx, client, cfg.Redis.Prefix, cfg.Redis.Timeout)
	if err != nil || number.Shards == 0 {
		return cfg
	}
	numbered := *cfg
	numbered.Redis.Shards = int64(number.Shards)
	return &numbered
}

// OtherNumber says that Redis has another number of shards than a configuration.
func OtherNumber(cfg *config.Config, shards int64) string {
	return fmt.Sprintf("redis.shards is %d in the configuration, and %d in Redis since a reshard, which is what counts: set redis.shards to %d", cfg.Redis.Shards, shards, shards)
}
