package run

// The leader's jobs.

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// leaderLease is the length of the leader's lease: after a leader has died, the next one starts that much
// later.
const leaderLease = 15 * time.Second

// lead runs the leader's jobs whenever this replica is the leader, until the context ends.
func (p *process) lead(ctx context.Context, cfg *config.Config, all *boards.Boards, c *ingest.Consumer) {
	fields, err := app.ArchivedFields(cfg)
	if err != nil {
		p.log.Error("this replica doesn't lead", zap.Error(err)) // a bug: the configuration was checked
		return
	}
	w := &writer{cfg: cfg, is: p.ops.archived, log: p.log}
	defer w.close()
	l := jobs.Leader{
		Redis: all.Shards()[0], Owner: jobs.NewOwner(), Length: leaderLease,
		Leading: p.ops.leads, Report: p.ops.jobs.ran, Log: p.log.Named("jobs"),
		Jobs: func(t jobs.Term) []jobs.Job {
			list := []jobs.Job{retireWindows(all, p.log), p.keepReshard(cfg, all)}
			if cfg.Seal {
				list = append(list, p.sealWindows(cfg, all))
			}
			if cfg.Archive.URL != "" {
				list = append(list, w.archiveWindows(all, fields, t))
			}
			if cfg.Kafka.FinalTopic != "" {
				list = append(list, p.publishWindows(cfg, all, w, fields))
			}
			if cfg.Listen != config.Off { // metrics
				list = append(list, countBoards(p.ops.boards, all), measurePoints(p.ops.points, cfg, all), p.measureReach(cfg, all, c))
			}
			return list
		},
	}
	if err := l.Run(ctx); err != nil {
		p.log.Error("this replica doesn't lead", zap.Error(err)) // a bug: the lease is invalid
	}
}

// retireEvery is the interval between two runs of retireWindows.
const retireEvery = time.Hour

// retireWindows removes the listings of expired windows.
func retireWindows(all *boards.Boards, log *zap.Logger) jobs.Job {
	return jobs.Job{Name: "retire", Every: retireEvery, Run: func(ctx context.Context) (time.Duration, error) {
		n, err := all.Retire(ctx)
		if n > 0 {
			log.Info("dropped the listings of expired windows", zap.Int("windows", n))
		}
		if ahead, ok := errors.AsType[*ranking.ClockError](err); ok {
			log.Warn(ahead.Error())
			err = nil
		}
		return 0, err
	}}
}

// jobMetrics exports whether this replica is the leader, and which jobs fail.
type jobMetrics struct {
	leader  prometheus.Gauge
	failing *prometheus.GaugeVec
}

func newJobMetrics() *jobMetrics {
	return &jobMetrics{
		leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: "standings_leader", Help: "1 if this replica is the leader, which runs the jobs that one replica runs, else 0."}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "standings_job_failing",
			Help: "1 if the last run of a job failed, else 0; it is repeated. The leader reports it."}, []string{"name"}),
	}
}

// Describe sends the descriptions.
func (m *jobMetrics) Describe(to chan<- *prometheus.Desc) {
	m.leader.Describe(to)
	m.failing.Describe(to)
}

// Collect sends the metrics.
func (m *jobMetrics) Collect(to chan<- prometheus.Metric) {
	m.leader.Collect(to)
	m.failing.Collect(to)
}

func (m *jobMetrics) ran(job string, err error) {
	failing := 0.0
	if err != nil {
		failing = 1
	}
	m.failing.WithLabelValues(job).Set(failing)
}

// leads is called when a term starts and after it has ended. A replica that is not the leader reports nothing
// about the jobs.
func (o *operations) leads(is bool) {
	if is {
		o.jobs.leader.Set(1)
		return
	}
	o.jobs.leader.Set(0)
	o.jobs.failing.Reset()
	for _, r := range []*reported{o.points, o.boards, o.due, o.archived, o.published, o.reach} {
		r.none()
	}
}
