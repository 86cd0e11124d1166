package main

// How much of the range of points is used, for the metrics: by one replica of all.

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
)

const (
	// rangeEvery is how often boards are looked at, and rangePause how long between two
	// pages of 500 windows: at most one command in a hundred of what Redis can do.
	rangeEvery = 30 * time.Second
	rangePause = 250 * time.Millisecond
	// rangeCheck is how often it is looked who has to.
	rangeCheck = time.Second
)

// pointsRange is how much of the range is used, by period; nil where another replica
// tells.
type pointsRange struct {
	mu   sync.Mutex
	used map[string]float64
}

func (r *pointsRange) set(used map[string]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = used
}

// watch looks while this process has the first topic's first partition: some replica
// does, and no other. It returns when the context ends.
func (r *pointsRange) watch(ctx context.Context, cfg *config.Config, store *ranking.Store, now func() ingest.Snapshot, log *zap.Logger) {
	tick := time.NewTicker(rangeCheck)
	defer tick.Stop()
	var looked time.Time
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch {
		case !hasFirst(now(), cfg.Kafka.Topics[0]):
			r.set(nil)
			looked = time.Time{}
			continue
		case time.Since(looked) < rangeEvery:
			continue
		}
		looked = time.Now()
		largest, err := store.Largest(ctx, cfg.Lateness, rangePause)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if !failed {
				log.Warn("couldn't look how much of the range of points is used; trying again", zap.Error(err))
			}
			failed = true
			r.set(nil) // nothing is said rather than something old
			continue
		}
		failed = false
		used := map[string]float64{}
		for period, points := range largest {
			used[period] = float64(points) / float64(cfg.MaxPoints)
		}
		r.set(used)
	}
}

func hasFirst(s ingest.Snapshot, topic string) bool {
	for _, p := range s.Partitions {
		if p.Topic == topic && p.Partition == 0 {
			return true
		}
	}
	return false
}

var pointsUsed = prometheus.NewDesc("standings_points_largest_ratio",
	"The largest points of a standing, or the largest negative ones, as a share of max_points: over all boards and the windows that still take events, "+
		"as of half a minute ago at most where boards are few. The replica with partition 0 of the first topic tells; the others don't.", []string{"period"}, nil)

// Describe names what is told.
func (*pointsRange) Describe(to chan<- *prometheus.Desc) { to <- pointsUsed }

// Collect tells what was seen last.
func (r *pointsRange) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for period, share := range r.used {
		to <- prometheus.MustNewConstMetric(pointsUsed, prometheus.GaugeValue, share, period)
	}
}
