package run

// The operations port: /healthz, /readyz and /metrics of `consumer run`.

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/app/build"
	"github.com/standings/standings/internal/app/serve"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/metrics"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/redisconn"
)

// operations is the port and what it reports. It opens before the process waits for anything, and closes after
// everything else has ended.
type operations struct {
	*readiness
	*measured

	client  redis.UniversalClient
	windows windowRoom
	ended   sync.WaitGroup
	stop    context.CancelFunc
	log     *zap.Logger
}

// openOperations opens the port and serves it until close. It returns an error if the port cannot be opened. If
// the port fails later, that is logged, and the process continues.
func openOperations(ctx context.Context, cfg *config.Config, client redis.UniversalClient, log *zap.Logger, stats *counts.Stats, port *serve.Port) (*operations, error) {
	o := &operations{
		readiness: newReadiness(cfg), measured: newMeasured(client), client: client, log: log,
		windows: windowRoom{most: cfg.MaxWindows}, stop: func() {},
	}
	if cfg.Listen == config.Off {
		return o, nil
	}
	server, err := api.Listen(ctx, api.Config{
		Listen: cfg.Listen, EndWithin: cfg.ShutdownTimeout / 20, NotReady: o.reasons, Broken: o.broken,
		Warnings: func() []api.Reason { return append(o.windows.warnings(), port.Warnings()...) },
		Metrics:  newRegistry(cfg, stats, o.snapshot, o.reasons, o.measured, port), Log: log,
	})
	if err != nil {
		return nil, err
	}
	log.Info("operations port open", zap.Stringer("address", server.Addr()))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // it also reports how the shutdown proceeds
	o.stop = stop
	o.ended.Go(func() {
		if err := server.Run(serving); err != nil {
			log.Error("the operations port is closed; the consumer continues without it", zap.Error(err))
		}
	})
	return o, nil
}

// watch reads from Redis what the port reports, until the context ends. Without a port it does nothing.
func (o *operations) watch(ctx context.Context, all *boards.Boards) {
	if o.cfg.Listen == config.Off {
		return
	}
	var each sync.WaitGroup
	each.Go(func() { o.watchRedis(ctx, all) })
	each.Go(func() {
		jobs.Repeat(ctx, o.log, countWindows(&o.windows, all),
			measureMemory(o.memory, func(ctx context.Context) ([]redisconn.Memory, error) { return redisconn.Memories(ctx, o.client) }))
	})
	each.Wait()
}

func (o *operations) close() {
	o.stop()
	o.ended.Wait()
}

// newRegistry returns a registry of everything that /metrics reports.
func newRegistry(cfg *config.Config, stats *counts.Stats, now func() ingest.Snapshot, notReady func() []api.Reason, measured *measured, port prometheus.Collector) *prometheus.Registry {
	all := prometheus.NewRegistry()
	all.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.New(stats, now), port, api.ReadyGauge(notReady), build.Metric(),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "standings_windows_max", Help: "The setting max_windows; an event that would open one more becomes a dead letter.",
		}, func() float64 { return float64(cfg.MaxWindows) }),
	)
	all.MustRegister(measured.collectors()...)
	return all
}
