package run

// Log lines about a Redis Cluster and its shape at the start.

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// sayCluster logs probable mistakes about a cluster that serves all slots in use.
func sayCluster(ctx context.Context, cfg *config.Config, client *redis.ClusterClient, log *zap.Logger) {
	if cfg.Redis.Shards == 1 {
		log.Info("Redis is a cluster, and one shard uses one master of it: consumer reshard spreads members over several")
	}
	for _, gap := range gaps(ctx, client, cfg) {
		log.Warn("the Redis cluster does not serve all of its slots", zap.String("gap", gap))
	}
}

// withGaps adds to a transient error the slots that the cluster does not serve.
func withGaps(ctx context.Context, err error, client redis.UniversalClient, cfg *config.Config) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok || ranking.Classify(err) != ledger.Retry || ctx.Err() != nil {
		return err
	}
	if all := gaps(ctx, cluster, cfg); len(all) > 0 {
		return fmt.Errorf("%w; %s", err, strings.Join(all, "; "))
	}
	return err
}

func gaps(ctx context.Context, client *redis.ClusterClient, cfg *config.Config) []string {
	ctx, cancel := context.WithTimeout(ctx, cfg.Redis.Timeout)
	defer cancel()
	all, _ := app.ClusterGaps(ctx, client, cfg) // if this fails, the calls that need the slots report the error
	return all
}
