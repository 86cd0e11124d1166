package main

// `consumer run`: the main job. It waits for Kafka and Redis, checks that both
// keep what they are given, and consumes until it is told to stop.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

func newRunCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Consume events and keep the standings",
		Long: `run joins the consumer group and keeps the standings in Redis until SIGTERM or
SIGINT: then it finishes the pieces in flight, commits, leaves the group and
exits with 0. Replicas share the partitions.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			log, err := newLogger(l.Config, p.Stderr, p.Colours(p.Stderr))
			if err != nil {
				return err
			}
			defer log.Sync() //nolint:errcheck // a terminal can't be synced
			return consume(c.Context(), l.Config, log, new(ingest.Stats), nil)
		},
	}
}

// consume runs a consumer until the context ends. ready, if given, is told of it
// before it starts.
func consume(ctx context.Context, cfg *config.Config, log *zap.Logger, stats *ingest.Stats, ready func(*ingest.Consumer)) error {
	if err := sayLayouts(cfg, log); err != nil {
		return err
	}
	var consumer atomic.Pointer[ingest.Consumer]
	client, err := clients.NewRedis(cfg, func(ctx context.Context, conn *redis.Conn) error {
		if c := consumer.Load(); c != nil {
			c.Reconnected()
		}
		// A failover may have brought another server's configuration.
		return ranking.TryEviction(ctx, conn, cfg.Redis.AssumeNoeviction)
	})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	ops, err := openOperations(ctx, cfg, client, log, stats)
	if err != nil {
		return err
	}
	defer ops.close()
	defer context.AfterFunc(ctx, ops.stops)()

	way, err := cfg.Kafka.Connection()
	if err != nil {
		return err
	}
	transport := clients.NewTransport(cfg, way)
	defer transport.CloseIdleConnections()
	cluster, partitions, err := awaitKafka(ctx, cfg, way, transport, log, ops.waitsForKafka)
	if err != nil || ctx.Err() != nil {
		return err
	}
	clients.LimitMemory(cfg, partitions, log)
	store, err := clients.NewStore(cfg, client, cluster)
	if err != nil {
		return err
	}
	if err := awaitRedis(ctx, cfg, store, log, ops.waitsForRedis); err != nil || ctx.Err() != nil {
		return err
	}
	c, err := clients.NewConsumer(cfg, way, transport, store, log, stats)
	if err != nil {
		return err
	}
	consumer.Store(c)
	ops.runs(c)
	if ready != nil {
		ready(c)
	}
	log.Info("consuming", zap.Strings("brokers", cfg.Kafka.Brokers), zap.Strings("topics", cfg.Kafka.Topics),
		zap.String("group", cfg.Kafka.Group), zap.Strings("redis", cfg.Redis.Addresses), zap.String("prefix", cfg.Redis.Prefix))
	running, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { retire(running, store, log) })
	beside.Go(func() { ops.watch(running, store) })
	err = c.Run(ctx)
	stop()
	beside.Wait()
	log.Info("stopped", zap.Int64("consumed", stats.Consumed()), zap.Int64("applied", stats.Applied.Load()),
		zap.Int64("dead_lettered", stats.DeadLettered()), zap.Int64("late", stats.Late.Load()),
		zap.Int64("skipped", stats.Skipped.Load()), zap.Int64("repeated", stats.Repeated.Load()),
		zap.Int64("batches", stats.Batches.Load()), zap.Int64("pieces", stats.Pieces.Load()), zap.Int64("updates", stats.Updates.Load()),
		zap.Int64("ledger_moves", stats.AllMoves()), zap.Int64("retries", stats.Retries.Load()+stats.KafkaTries.Load()), zap.Int64("dead_letters_written", stats.DeadLetters.Load()))
	if _, answered := errors.AsType[kafka.Error](err); answered {
		return clients.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	}
	return err
}

// sayLayouts logs what the configured layouts come to, and warns of what an
// operator may not have meant.
func sayLayouts(cfg *config.Config, log *zap.Logger) error {
	layouts, warnings, err := cfg.Layouts()
	if err != nil {
		return err
	}
	for _, l := range layouts {
		log.Info("scores", zap.String("period", l.Period), zap.String("layout", l.Layout), zap.Int("k", l.K),
			zap.Int64("tick_ms", l.TickMS), zap.Int64("max_points", l.MaxPoints), zap.String("retention", l.Retention))
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	return nil
}

// retireEvery is how often the listings of windows that are over are looked for.
const retireEvery = time.Hour

// retire drops them, now and then. Every replica does it; once is enough.
func retire(ctx context.Context, store *ranking.Store, log *zap.Logger) {
	tick := time.NewTicker(retireEvery)
	defer tick.Stop()
	for {
		n, err := store.Retire(ctx)
		if ahead, ok := errors.AsType[*ranking.ClockError](err); ok {
			log.Warn(ahead.Error())
		} else if err != nil && ctx.Err() == nil {
			log.Warn("couldn't drop the listings of windows that are over; trying again in an hour", zap.Error(err))
		}
		if n > 0 {
			log.Info("windows that are over are no longer listed", zap.Int("windows", n))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sayEvery is how often a wait that goes on is told.
const sayEvery = 5 * time.Second

// await tries until it works, the context ends, or the error is one that waiting
// doesn't mend. waits is told what each try came to.
func await(ctx context.Context, log *zap.Logger, what string, meaning func(error) ledger.Verdict, waits func(error), try func() error) error {
	waits(nil)
	told := time.Time{}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := try()
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // done, or told to stop
		}
		if meaning(err) == ledger.Refuse {
			return err
		}
		waits(err)
		if time.Since(told) >= sayEvery {
			told = time.Now()
			log.Warn("waiting for "+what, zap.Error(err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// awaitKafka waits for a broker, and returns the cluster's id and how many
// partitions the topics have so far.
func awaitKafka(ctx context.Context, cfg *config.Config, way connect.Way, transport *kafka.Transport, log *zap.Logger, waits func(error)) (cluster string, partitions int, err error) {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: cfg.Kafka.Timeout}
	err = await(ctx, log, "Kafka", ingest.AtStart, waits, func() error {
		m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
		if err != nil {
			return clients.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
		}
		// The rest of the work is with the addresses that the cluster advertises.
		if err := way.Diagnose(ctx, cfg.Kafka.Brokers...); err != nil {
			return err
		}
		cluster = m.ClusterID
		for _, t := range m.Topics {
			partitions += len(t.Partitions)
		}
		return nil
	})
	return cluster, partitions, err
}

// awaitRedis waits for Redis, and refuses one that may lose a part of what it holds, or
// whose standings were written with another configuration: a member of the group with that
// would halt the partitions that it is given, which others would count.
func awaitRedis(ctx context.Context, cfg *config.Config, store *ranking.Store, log *zap.Logger, waits func(error)) error {
	err := await(ctx, log, "Redis", ranking.AtStart, waits, func() error {
		if err := store.Try(ctx, cfg.Redis.AssumeNoeviction); err != nil {
			return clients.ExplainRedis(ctx, err, cfg)
		}
		state, err := store.State(ctx)
		if err != nil {
			return clients.ExplainRedis(ctx, err, cfg)
		}
		return store.CheckSchema(state.Schema)
	})
	if err == nil && store.Trusted() {
		log.Warn("Redis doesn't tell its maxmemory-policy: redis.assume_noeviction says that it is noeviction, and nothing checks it")
	}
	return err
}
