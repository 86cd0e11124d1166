package run

// How many boards and windows there are, for the metrics: by one replica of all.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// countEvery is how often windows are counted, which is one short command, and after
	// them boards: countPause is between two pages of 500 windows.
	countEvery = 10 * time.Second
	countPause = 25 * time.Millisecond
)

var (
	windowsListed = prometheus.NewDesc("standings_windows",
		"Windows that Redis lists, of the shard with the most. Reported by the replica with partition 0 of the first topic.", nil, nil)
	boardsListed = prometheus.NewDesc("standings_boards",
		"Boards that have a window, at most 30 s old. Reported by the replica with partition 0 of the first topic.", nil, nil)
)

// countBoards is when they are counted, and how.
func countBoards(r *reported, topic string, all *boards.Boards) turn {
	return turn{topic: topic, every: countEvery, what: "count the boards", none: r.none, look: func(ctx context.Context) error {
		windows, err := all.Windows(ctx)
		if err != nil {
			return err
		}
		listed, before := gauge(windowsListed, float64(windows)), *r.last.Load()
		if len(before) == 2 { // to count boards takes a while
			r.set(listed, before[1])
		} else {
			r.set(listed)
		}
		n, err := all.Count(ctx, countPause)
		if err != nil {
			return err
		}
		r.set(listed, gauge(boardsListed, float64(n)))
		return nil
	}}
}
