package app

// The number of shards: the record in Redis takes precedence over the configuration.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/inventory"
)

// Numbered returns the configuration with the number of shards that Redis has. The configuration is unchanged if Redis
// has none.
func Numbered(ctx context.Context, cfg *config.Config, client redis.UniversalClient) (*config.Config, error) {
	number, err := inventory.FindNumber(ctx, client, cfg.Redis.Prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if err != nil || number == 0 {
		return cfg, err
	}
	numbered := *cfg
	numbered.Redis.Shards = int64(number)
	return &numbered, nil
}

// OtherNumber returns the message that Redis has another number of shards than the configuration.
func OtherNumber(cfg *config.Config, shards int64) string {
	return fmt.Sprintf("redis.shards is %d in the configuration but %d in Redis, which takes precedence: set redis.shards to %d, or change the number of shards by consumer reshard --to %d",
		cfg.Redis.Shards, shards, shards, cfg.Redis.Shards)
}
