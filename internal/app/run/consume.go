// Package run implements `consumer run`, the main job. It waits for Kafka and Redis, checks that both keep the
// data written to them, and consumes until its context ends.
package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/app/serve"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/zoneinfo"
)

// Consume runs a consumer until the context ends. ready, if not nil, receives the consumer before it starts.
// The last log line has the counts: after every orderly end, even if the process still waits for Kafka or
// Redis, and after any end of a consumer that ran.
func Consume(ctx context.Context, cfg *config.Config, log *zap.Logger, stats *counts.Stats, ready func(*ingest.Consumer)) error {
	var consumer atomic.Pointer[ingest.Consumer]
	err := begin(ctx, cfg, log, stats, ready, &consumer)
	if ctx.Err() != nil && consumer.Load() == nil && errors.Is(err, context.Canceled) {
		err = nil // the context ended in the middle of a call
	}
	if consumer.Load() != nil || err == nil && ctx.Err() != nil {
		sayStopped(log, stats)
	}
	if _, answered := errors.AsType[kafka.Error](err); answered && consumer.Load() != nil {
		return app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	}
	return err
}

func sayStopped(log *zap.Logger, stats *counts.Stats) {
	log.Info("stopped", zap.Int64("consumed", stats.Consumed()), zap.Int64("applied", stats.Applied.Load()),
		zap.Int64("dead_lettered", stats.DeadLettered()), zap.Int64("late", stats.Late.Load()), zap.Int64("early", stats.Early.Load()),
		zap.Int64("skipped", stats.Skipped.Load()), zap.Int64("repeated", stats.Repeated.Load()), zap.Int64("duplicates", stats.Duplicates.Load()),
		zap.Int64("batches", stats.Batches.Load()), zap.Int64("pieces", stats.Pieces.Load()), zap.Int64("updates", stats.Updates.Load()),
		zap.Int64("ledger_moves", stats.AllMoves()), zap.Int64("retries", stats.Retries.Load()+stats.KafkaTries.Load()), zap.Int64("dead_letters_written", stats.DeadLetters.Load()))
}

// begin opens everything that a consumer needs throughout its life, and consumes.
func begin(ctx context.Context, cfg *config.Config, log *zap.Logger, stats *counts.Stats, ready func(*ingest.Consumer), consumer *atomic.Pointer[ingest.Consumer]) error {
	log.Info("time zone data", zap.String("version", zoneinfo.Current().Version), zap.String("source", zoneinfo.Current().Source))
	if err := sayLayouts(cfg, log); err != nil {
		return err
	}
	var keeper atomic.Pointer[bans.Keeper]
	client, err := app.NewRedis(cfg, func(ctx context.Context, conn *redis.Conn) error {
		if c := consumer.Load(); c != nil {
			c.Reconnected()
		}
		if k := keeper.Load(); k != nil {
			k.Wake()
		}
		// After a failover, another server with another configuration may answer.
		return redisconn.CheckEviction(ctx, conn, cfg.Redis.AssumeNoeviction)
	})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	var desk atomic.Pointer[bans.Desk]
	port, err := serve.Open(ctx, cfg, &desk, log)
	if err != nil {
		return err
	}
	defer port.Close()
	ops, err := openOperations(ctx, cfg, client, log, stats, port)
	if err != nil {
		return err
	}
	defer ops.close()
	defer context.AfterFunc(ctx, ops.stops)()

	settings, err := cfg.Kafka.Connection()
	if err != nil {
		return err
	}
	transport := app.NewTransport(cfg, settings)
	defer transport.CloseIdleConnections()
	cluster, partitions, err := awaitKafka(ctx, cfg, settings, transport, log, ops.waitsForKafka)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if err := app.CheckDuplicates(cfg, partitions); err != nil {
		return err
	}
	app.LimitMemory(cfg, partitions, log)
	if cfg.Duplicates > 0 {
		log.Info("events are compared with those before them, for duplicates", zap.Int64("records", cfg.Duplicates), zap.Int("partitions", partitions),
			zap.Int64("bytes", app.DuplicatesMemory(cfg, partitions)))
	}
	p := &process{log: log, stats: stats, ready: ready, client: client, ops: ops, settings: settings, transport: transport, cluster: cluster, consumer: consumer, keeper: &keeper}
	closeBans, err := p.openBans(ctx, cfg)
	if err != nil || ctx.Err() != nil {
		return err
	}
	defer closeBans()
	if err := p.checkFinalTopic(ctx, cfg); err != nil || ctx.Err() != nil {
		return err
	}
	ops.reportBans(p.bans)
	desk.Store(p.desk())
	for {
		if err = p.consume(ctx, cfg); !errors.Is(err, errRenumbered) {
			return err
		}
		log.Info("the boards have another number of shards; going on with that", zap.Error(err))
	}
}

// process has everything that outlives a change of the number of shards.
type process struct {
	log       *zap.Logger
	stats     *counts.Stats
	ready     func(*ingest.Consumer)
	client    redis.UniversalClient
	ops       *operations
	settings  kafkaconn.Settings
	transport *kafkaconn.Transport
	cluster   string
	consumer  *atomic.Pointer[ingest.Consumer]
	keeper    *atomic.Pointer[bans.Keeper]
	bans      *bans.Follower // nil: no bans
}

// consume consumes with the present number of shards, until the context ends. If that number changes, it
// returns errRenumbered.
func (p *process) consume(ctx context.Context, configured *config.Config) error {
	cfg, err := p.numbered(ctx, configured)
	if err != nil || ctx.Err() != nil {
		return err
	}
	all, err := app.NewBoards(cfg, p.client, p.cluster)
	if err != nil {
		return err
	}
	p.ops.reportMasters(all)
	if err := awaitRedis(ctx, cfg, p.client, all, p.log, p.ops.waitsForRedis); err != nil || ctx.Err() != nil {
		return err
	}
	keeper, err := p.alignBans(ctx, cfg, all)
	if err != nil || ctx.Err() != nil {
		return err
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	before := app.BeforeCounting{Begin: func(ctx context.Context) error {
		err := claim(ctx, p.client, cfg)
		if errors.Is(err, errRenumbered) {
			stop(err)
		}
		return err
	}}
	if keeper != nil {
		before.Align = keeper.Align
	}
	pause := new(ingest.Pause)
	c, err := app.NewConsumer(cfg, p.settings, p.transport, all, pause, before, p.log, p.stats)
	if err != nil {
		return err
	}
	p.consumer.Store(c)
	p.ops.runs(c)
	if p.ready != nil {
		p.ready(c)
	}
	p.log.Info("consuming", zap.Strings("brokers", cfg.Kafka.Brokers), zap.Strings("topics", cfg.Kafka.Topics),
		zap.String("group", cfg.Kafka.Group), zap.Strings("redis", cfg.Redis.Addresses), zap.String("prefix", cfg.Redis.Prefix), zap.Int64("shards", cfg.Redis.Shards))
	var beside sync.WaitGroup
	beside.Go(func() { p.ops.watch(running, all) })
	if keeper != nil {
		beside.Go(func() { keeper.Watch(running) })
	}
	beside.Go(func() { p.lead(running, cfg, all, c) })
	beside.Go(func() { p.watchNumber(running, cfg, pause, stop) })
	err = c.Run(running)
	stop(nil)
	beside.Wait()
	if renumbered := context.Cause(running); err == nil && ctx.Err() == nil && errors.Is(renumbered, errRenumbered) {
		return renumbered
	}
	return err
}

// sayLayouts logs the configured layouts, and warnings about probable mistakes.
func sayLayouts(cfg *config.Config, log *zap.Logger) error {
	layouts, warnings, err := cfg.Layouts(time.Now())
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

// sayEvery is the minimum interval between log lines about a lasting wait.
const sayEvery = 5 * time.Second

// atStart is the wait between two attempts to reach Kafka or Redis.
var atStart = retry.Policy{First: 100 * time.Millisecond, Longest: 2 * time.Second}

// await tries until it succeeds, the context ends, or the error is permanent. waits receives the error of each
// try.
func await(ctx context.Context, log *zap.Logger, what string, classify func(error) ledger.Verdict, waits func(error), try func() error) error {
	waits(nil)
	var logged retry.LogLimit
	for wait := atStart.Start(); ; {
		err := try()
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // done, or the context has ended
		}
		if classify(err).AtStart() == ledger.Refuse {
			return err
		}
		waits(err)
		if logged.Due(sayEvery) {
			log.Warn("waiting for "+what, zap.Error(err))
		}
		if wait.Next(ctx) != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

// awaitKafka waits for a broker, and returns the cluster's id and the present number of partitions of all
// topics.
func awaitKafka(ctx context.Context, cfg *config.Config, settings kafkaconn.Settings, transport *kafkaconn.Transport, log *zap.Logger, waits func(error)) (cluster string, partitions int, err error) {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: cfg.Kafka.Timeout}
	err = await(ctx, log, "Kafka", kafkaconn.Classify, waits, func() error {
		m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
		if err != nil {
			return app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
		}
		// All later calls use the addresses that the cluster advertises.
		if err := settings.Diagnose(ctx, cfg.Kafka.Brokers...); err != nil {
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

func logAdded(log *zap.Logger, a ledger.Added) {
	if a.Board != "" {
		log = log.With(zap.String("board", a.Board))
	}
	if a.Since == 0 {
		log.Info("a period was added; consumers that are configured without it halt until they have it", zap.String("period", a.Period))
		return
	}
	log.Warn("a period was added; its windows that start before since are incomplete until consumer rebuild counts them; consumers that are configured without the period halt until they have it",
		zap.String("period", a.Period), zap.Time("since", time.UnixMilli(a.Since).UTC()))
}

// awaitRedis waits for Redis. It refuses a Redis that may lose part of its data, or whose standings have
// another schema: in the group, this process would halt its partitions, which other replicas could count. Then
// it records the number of shards.
func awaitRedis(ctx context.Context, cfg *config.Config, client redis.UniversalClient, all *boards.Boards, log *zap.Logger, waits func(error)) error {
	var other error
	err := await(ctx, log, "Redis", ranking.Classify, waits, func() error {
		if err := all.Try(ctx, cfg.Redis.AssumeNoeviction); err != nil {
			return withGaps(ctx, app.ExplainRedis(ctx, err, cfg), client, cfg)
		}
		states, errs := all.States(ctx)
		for _, err := range errs {
			if err != nil {
				return withGaps(ctx, app.ExplainRedis(ctx, err, cfg), client, cfg)
			}
		}
		added, err := all.Extend(ctx, states, cfg.MaxFuture)
		if err != nil {
			return err
		}
		for _, a := range added {
			logAdded(log, a)
		}
		if err := all.CheckSchemas(states); err != nil {
			return err
		}
		err = claim(ctx, client, cfg)
		if errors.Is(err, errRenumbered) { // since the number was read
			other, err = err, nil
		}
		return err
	})
	if other != nil {
		return other
	}
	if cluster, ok := client.(*redis.ClusterClient); ok && err == nil && ctx.Err() == nil {
		sayCluster(ctx, cfg, cluster, log)
	}
	if err == nil && all.Trusted() {
		log.Warn("Redis does not report its maxmemory-policy: assuming noeviction because of redis.assume_noeviction")
	}
	return err
}
