package main

// How much memory Redis has, for the metrics: every replica reports it, since it is what
// all of them wait for.

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ranking"
)

// memoryEvery is how often INFO memory is asked for, of every master: a tenth of a
// millisecond.
const memoryEvery = 10 * time.Second

// redisMemory is what the masters reported last.
type redisMemory struct {
	mu  sync.Mutex
	all []ranking.Memory
}

func (m *redisMemory) set(all []ranking.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = all
}

// watch looks until the context ends.
func (m *redisMemory) watch(ctx context.Context, look func(context.Context) ([]ranking.Memory, error), log *zap.Logger) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	failed := false
	for {
		all, err := look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			log.Warn("couldn't look how much memory Redis uses; trying again", zap.Error(err))
		}
		if failed = err != nil; failed {
			all = nil // nothing is reported rather than something old
		}
		m.set(all)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

var (
	redisMemoryUsed = prometheus.NewDesc("standings_redis_memory_used_bytes",
		"Memory that a server of Redis uses (used_memory of INFO), as of some seconds ago. A server that doesn't report it isn't there.", []string{"server"}, nil)
	redisMemoryMax = prometheus.NewDesc("standings_redis_memory_max_bytes",
		"Its maxmemory, beyond which it refuses writes; 0 for no limit.", []string{"server"}, nil)
)

// Describe names what is reported.
func (m *redisMemory) Describe(to chan<- *prometheus.Desc) {
	to <- redisMemoryUsed
	to <- redisMemoryMax
}

// Collect reports what was seen last.
func (m *redisMemory) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		to <- prometheus.MustNewConstMetric(redisMemoryUsed, prometheus.GaugeValue, float64(one.Used), one.Server)
		to <- prometheus.MustNewConstMetric(redisMemoryMax, prometheus.GaugeValue, float64(one.Max), one.Server)
	}
}
