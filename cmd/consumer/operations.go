package main

// The operations port: what /healthz, /readyz and /metrics tell of `consumer run`.

import (
	"context"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/metrics"
	"github.com/standings/standings/internal/ranking"
)

// operations is the port and what it tells. It is open before anything is waited for,
// and closes after everything else has ended.
type operations struct {
	*readiness
	points pointsRange
	boards boardCount
	memory redisMemory
	ended  sync.WaitGroup
	stop   context.CancelFunc
	log    *zap.Logger
}

// openOperations opens the port and serves it until close. A port that can't be opened
// is an error; one that breaks later is told, and the work goes on.
func openOperations(ctx context.Context, cfg *config.Config, client redis.UniversalClient, log *zap.Logger, stats *ingest.Stats) (*operations, error) {
	o := &operations{readiness: newReadiness(cfg), boards: boardCount{limit: cfg.MaxWindows}, log: log, stop: func() {}}
	if cfg.Listen == config.Off {
		return o, nil
	}
	server, err := api.Listen(ctx, api.Config{
		Listen: cfg.Listen, EndWithin: cfg.ShutdownTimeout / 20, NotReady: o.reasons, Broken: o.broken, Metrics: newRegistry(stats, o.snapshot, o.reasons, client, &o.points, &o.boards, &o.memory), Log: log,
	})
	if err != nil {
		return nil, err
	}
	log.Info("operations port open", zap.Stringer("address", server.Addr()))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // it also tells how the end goes
	o.stop = stop
	o.ended.Go(func() {
		if err := server.Run(serving); err != nil {
			log.Error("the operations port is closed; the consumer goes on without it", zap.Error(err))
		}
	})
	return o, nil
}

// watch looks at Redis for what is told, until the context ends. Without a port nobody
// is told.
func (o *operations) watch(ctx context.Context, store *ranking.Store) {
	if o.cfg.Listen == config.Off {
		return
	}
	var all sync.WaitGroup
	all.Go(func() { o.watchRedis(ctx, store) })
	all.Go(func() { o.points.watch(ctx, o.cfg, store, o.snapshot, o.log) })
	all.Go(func() { o.boards.watch(ctx, o.cfg.Kafka.Topics[0], store, o.snapshot, o.log) })
	all.Go(func() { o.memory.watch(ctx, store.Memories, o.log) })
	all.Wait()
}

func (o *operations) close() {
	o.stop()
	o.ended.Wait()
}

// newRegistry has everything that /metrics shows.
func newRegistry(stats *ingest.Stats, now func() ingest.Snapshot, notReady func() []api.Reason, client redis.UniversalClient, points, boards, memory prometheus.Collector) *prometheus.Registry {
	all := prometheus.NewRegistry()
	all.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.New(stats, now),
		poolCollector{client}, points, boards, memory,
		gaugeOf("ready", "1 while /readyz says so, else 0.", func() float64 {
			if len(notReady()) > 0 {
				return 0
			}
			return 1
		}),
		buildInfo(),
	)
	return all
}

func gaugeOf(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "standings_" + name, Help: help}, value)
}

// buildInfo is always 1; what it says is in its labels.
func buildInfo() prometheus.Collector {
	version, revision := buildVersion()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "standings_build_info", Help: "1; which build this is stands in the labels.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// poolCollector shows the connections to Redis.
type poolCollector struct{ client redis.UniversalClient }

var (
	poolConnections = prometheus.NewDesc("standings_redis_connections", "Connections to Redis, by what they do.", []string{"state"}, nil)
	poolTimeouts    = prometheus.NewDesc("standings_redis_pool_timeouts_total", "Calls that got no connection to Redis in time.", nil, nil)
)

// Describe names what is told.
func (poolCollector) Describe(to chan<- *prometheus.Desc) {
	to <- poolConnections
	to <- poolTimeouts
}

// Collect asks the pool, which knows by heart.
func (p poolCollector) Collect(to chan<- prometheus.Metric) {
	s := p.client.PoolStats()
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(s.IdleConns), "idle")
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(s.TotalConns-min(s.IdleConns, s.TotalConns)), "used")
	to <- prometheus.MustNewConstMetric(poolTimeouts, prometheus.CounterValue, float64(s.Timeouts))
}
