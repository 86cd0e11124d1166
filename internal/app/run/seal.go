package run

// Sealing, a job of the leader.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/sealing"
)

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
