package run

// How far back the log reaches, for the metrics.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
)

const reachEvery = 5 * time.Minute

var logReach = prometheus.NewDesc("standings_log_reach_seconds",
	"How far back every partition has all records. An older Redis backup cannot be restored without a gap. Absent if no record was ever deleted. Reported by the leader.", nil, nil)

func (p *process) measureReach(cfg *config.Config, all *boards.Boards, c *ingest.Consumer) jobs.Job {
	client := p.topicsClient(cfg)
	return look("measure the log", reachEvery, p.ops.reach.none, func(ctx context.Context) (time.Duration, error) {
		state, err := all.Shards()[0].State(ctx)
		if err != nil {
			return 0, err
		}
		topics, err := app.ReadTopics(ctx, cfg, client)
		if err != nil {
			return 0, err
		}
		r, err := app.Reach(ctx, c, topics, state.Clock)
		if err != nil {
			return 0, err
		}
		p.ops.reach.none()
		if r.Since > 0 {
			p.ops.reach.set(gauge(logReach, max(0, state.Clock().Sub(time.UnixMilli(r.Since)).Seconds())))
		}
		return 0, nil
	})
}
