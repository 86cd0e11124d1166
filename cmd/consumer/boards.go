package main

// How many boards and windows there are, for the metrics: by one replica of all.

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
)

const (
	// countEvery is how often windows are counted, which is one short command, and after
	// them boards: countPause is between two pages of 500 windows.
	countEvery = 10 * time.Second
	countPause = 25 * time.Millisecond
	// countCheck is how often it is checked whose turn it is.
	countCheck = time.Second
)

// boardCount is how many boards and windows there are; nil where another replica reports
// them, or where nothing is known yet.
type boardCount struct {
	limit int64 // of windows

	mu              sync.Mutex
	boards, windows *float64
}

func (c *boardCount) set(boards, windows *float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boards, c.windows = boards, windows
}

// watch counts while this process has the first topic's first partition: some replica
// does, and no other. It returns when the context ends.
func (c *boardCount) watch(ctx context.Context, topic string, store *ranking.Store, now func() ingest.Snapshot, log *zap.Logger) {
	tick := time.NewTicker(countCheck)
	defer tick.Stop()
	var counted time.Time
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch {
		case !hasFirst(now(), topic):
			c.set(nil, nil)
			counted = time.Time{}
			continue
		case time.Since(counted) < countEvery:
			continue
		}
		counted = time.Now()
		err := c.count(ctx, store)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			log.Warn("couldn't count the boards; trying again", zap.Error(err))
		}
		if failed = err != nil; failed {
			c.set(nil, nil) // nothing is reported rather than something old
		}
	}
}

func (c *boardCount) count(ctx context.Context, store *ranking.Store) error {
	windows, err := store.Windows(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	boards := c.boards
	c.mu.Unlock()
	c.set(boards, gauge(int(windows)))
	n, err := store.Boards(ctx, countPause)
	if err != nil {
		return err
	}
	c.set(gauge(n), gauge(int(windows)))
	return nil
}

func gauge(n int) *float64 {
	f := float64(n)
	return &f
}

var (
	windowsListed = prometheus.NewDesc("standings_windows",
		"Windows of all boards that Redis lists, as of some seconds ago. The replica with partition 0 of the first topic reports it.", nil, nil)
	windowsMax   = prometheus.NewDesc("standings_windows_max", "max_windows: an event that would open one more is a dead letter.", nil, nil)
	boardsListed = prometheus.NewDesc("standings_boards",
		"Boards that have a window, as of half a minute ago at most. The replica with partition 0 of the first topic reports it.", nil, nil)
)

// Describe names what is reported.
func (c *boardCount) Describe(to chan<- *prometheus.Desc) {
	to <- windowsListed
	to <- windowsMax
	to <- boardsListed
}

// Collect reports what was counted last.
func (c *boardCount) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to <- prometheus.MustNewConstMetric(windowsMax, prometheus.GaugeValue, float64(c.limit))
	if c.windows != nil {
		to <- prometheus.MustNewConstMetric(windowsListed, prometheus.GaugeValue, *c.windows)
	}
	if c.boards != nil {
		to <- prometheus.MustNewConstMetric(boardsListed, prometheus.GaugeValue, *c.boards)
	}
}
