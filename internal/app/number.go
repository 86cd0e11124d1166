package app

// The number of shards, which Redis records once a reshard has changed it.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
)

// Recorded returns the configuration with the number of shards that Redis has recorded, or false if it has no
// record.
func Recorded(ctx context.Context, cfg *config.Config, client redis.UniversalClient) (*config.Config, bool, error) {
	number, err := ranking.ReadNumber(ctx, client, cfg.Redis.Prefix, cfg.Redis.Timeout)
	if err != nil || number.Shards == 0 {
		return cfg, false, err
	}
	numbered := *cfg
	numbered.Redis.Shards = int64(number.Shards)
	return &numbered, true, nil
}

// Numbered returns the same as Recorded, or the unchanged configuration if Redis does not answer.
func Numbered(ctx context.Context, cfg *config.Config, client redis.UniversalClient) *config.Config {
	numbered, _, _ := Recorded(ctx, cfg, client)
	return numbered
}

// OtherNumber returns the message that Redis has another number of shards than the configuration.
func OtherNumber(cfg *config.Config, shards int64) string {
	return fmt.Sprintf("redis.shards is %d in the configuration but %d in Redis since a reshard, and Redis takes precedence: set redis.shards to %d", cfg.Redis.Shards, shards, shards)
}
