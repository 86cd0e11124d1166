package serve

// The API alone.

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/app/build"
	"github.com/standings/standings/internal/config"
)

// lookEvery is how often Redis is checked, for readiness.
const lookEvery = time.Second

// Run serves the API alone until the context ends.
func Run(ctx context.Context, cfg *config.Config, log *zap.Logger) error {
	if cfg.API.Listen == config.Off {
		return fmt.Errorf("%w: api.listen is off: set it to where the API is to be, such as 127.0.0.1:8090", config.ErrInvalid)
	}
	defer collectSeldom()()
	port, err := Open(ctx, cfg, nil, log)
	if err != nil {
		return err
	}
	defer port.Close()
	if cfg.Listen == config.Off {
		<-ctx.Done()
		return nil
	}
	var reasons atomic.Pointer[[]api.Reason]
	reasons.Store(&[]api.Reason{{Reason: "starting", What: "Redis has not been checked yet", Remedy: "none is needed"}})
	all := prometheus.NewRegistry()
	notReady := func() []api.Reason { return *reasons.Load() }
	all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), port, api.ReadyGauge(notReady), build.Metric())
	ops, err := api.Listen(ctx, api.Config{
		Listen: cfg.Listen, EndWithin: cfg.ShutdownTimeout / 20, Metrics: all, Log: log,
		NotReady: notReady, Warnings: port.Warnings, Broken: func() []api.Reason { return nil },
	})
	if err != nil {
		return err
	}
	log.Info("operations port open", zap.Stringer("address", ops.Addr()))
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	looking.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			now := port.notReady(ctx, cfg)
			reasons.Store(&now)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return ops.Run(ctx)
}

// collectSeldom makes the garbage collector run less often, unless the operator has set GOGC: little memory is
// held between requests, so it would otherwise run all the time. It returns a function that restores the
// setting.
func collectSeldom() func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(was) }
}

// notReady returns why boards cannot be read now.
func (p *Port) notReady(ctx context.Context, cfg *config.Config) []api.Reason {
	all := []api.Reason{}
	ctx, cancel := context.WithTimeout(ctx, cfg.API.Timeout)
	defer cancel()
	if err := p.reader.Answers(ctx); err != nil {
		all = append(all, api.Reason{Reason: "redis", What: app.ExplainRedis(ctx, err, cfg).Error(), Remedy: "see that Redis can be reached; requests are answered again once it can"})
	}
	return all
}
