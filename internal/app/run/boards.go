package run

// The numbers of boards and windows, for the metrics.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// countEvery is how often windows are counted, with one short command, and then boards. countPause is the
	// pause between two pages of 500 windows.
	countEvery = 10 * time.Second
	countPause = 25 * time.Millisecond
)

var (
	windowsListed = prometheus.NewDesc("standings_windows",
		"Windows that Redis lists, of the shard with the most. Reported by the leader.", nil, nil)
	boardsListed = prometheus.NewDesc("standings_boards",
		"Boards that have a window, at most 30 s old. Reported by the leader.", nil, nil)
)

func countBoards(r *reported, all *boards.Boards) jobs.Job {
	return look("count boards", countEvery, r.none, func(ctx context.Context) (time.Duration, error) {
		windows, err := all.Windows(ctx)
		if err != nil {
			return 0, err
		}
		listed, before := gauge(windowsListed, float64(windows)), *r.last.Load()
		if len(before) == 2 { // counting boards takes a while
			r.set(listed, before[1])
		} else {
			r.set(listed)
		}
		n, err := all.Count(ctx, countPause)
		if err != nil {
			return 0, err
		}
		r.set(listed, gauge(boardsListed, float64(n)))
		return 0, nil
	})
}
