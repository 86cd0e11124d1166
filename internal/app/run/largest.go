package run

// The used share of the range of points, for the metrics.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// rangeEvery is how often the boards are checked. rangePause is the pause between two pages of 500 windows,
	// so that this uses at most a hundredth of the commands that Redis can process.
	rangeEvery = 30 * time.Second
	rangePause = 250 * time.Millisecond
)

var pointsUsed = prometheus.NewDesc("standings_points_largest_ratio",
	"Largest absolute points of a standing, as a share of max_points, over all boards with the default rule and open windows. Reported by the leader, every 30 s if there are few boards.", []string{"period"}, nil)

func measurePoints(r *reported, cfg *config.Config, all *boards.Boards) jobs.Job {
	latenesses := map[string]time.Duration{}
	for _, p := range cfg.Kept() {
		latenesses[string(p.Name)] = cfg.LatenessOf(p)
	}
	lateness := func(period string) time.Duration { return latenesses[period] }
	return look("measure points", rangeEvery, r.none, func(ctx context.Context) (time.Duration, error) {
		largest, err := all.Largest(ctx, lateness, rangePause)
		if err != nil {
			return 0, err
		}
		var used []prometheus.Metric
		for period, points := range largest {
			used = append(used, gauge(pointsUsed, float64(points)/float64(cfg.MaxPoints), period))
		}
		r.set(used...)
		return 0, nil
	})
}
