package run

// What is said at start of a Redis Cluster and its shape.

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

// sayCluster logs what an operator may not have meant of a cluster that serves all that is used
// of it.
func sayCluster(ctx context.Context, cfg *config.Config, client *redis.ClusterClient, log *zap.Logger) {
	if cfg.Redis.Shards == 1 {
		log.Info("Redis is a cluster, and one shard uses one master of it: consumer reshard spreads members over several")
	}
	for _, gap := range gaps(ctx, client, cfg) {
		log.Warn("the Redis cluster does not serve all of its slots", zap.String("gap", gap))
	}
}

// withGaps adds to an error that waiting may help what the cluster doesn't serve.
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
	all, _ := app.ClusterGaps(ctx, client, cfg) // what can't be asked is said by the calls that matter
	return all
}
