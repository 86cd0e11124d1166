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
	"github.com/standings/standings/internal/sealing"
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
		Leading: p.ops.leads, Report: p.ops.ran, Log: p.log.Named("jobs"),
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

const (
	// sealPause is the pause between two pages of 500 listed windows.
	sealPause = 25 * time.Millisecond
	// The next reading of the listing starts after sealRest times the duration of the last one, but within
	// these two limits, or when the next window closes. A window that waits for the ledger is sealed with the
	// same delay.
	sealLeast, sealEvery = 2 * time.Second, time.Minute
	sealRest             = 20
)

var windowsDue = prometheus.NewDesc("standings_windows_due",
	"Windows that accept no more events and are not final yet. Only with seal. Reported by the leader.", nil, nil)

func (p *process) sealWindows(cfg *config.Config, all *boards.Boards) jobs.Job {
	s := sealing.Sealer{
		Boards: all, Kafka: p.topicsClient(cfg), Topics: cfg.Kafka.Topics,
		Lateness: app.Lateness(cfg), Pause: sealPause, Now: time.Now, Log: p.log,
	}
	return look("seal", sealEvery, p.ops.due.none, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		r, err := s.Seal(ctx)
		if err != nil {
			return 0, err
		}
		p.ops.due.set(gauge(windowsDue, float64(r.Due)))
		rest := min(max(sealRest*time.Since(began), sealLeast), sealEvery)
		return min(rest, max(r.Next, sealLeast/2)), nil
	})
}
