package run

// The memory of Redis, for the metrics. Every replica reports it, because all of them depend on it.

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/redisconn"
)

// memoryEvery is how often INFO memory is sent to every master. The call takes a tenth of a millisecond.
const memoryEvery = 10 * time.Second

var (
	redisMemoryUsed = prometheus.NewDesc("standings_redis_memory_used_bytes",
		"The server's used_memory. Absent if the server does not report it.", []string{"server"}, nil)
	redisMemoryMax = prometheus.NewDesc("standings_redis_memory_max_bytes",
		"The server's maxmemory; 0 for no limit.", []string{"server"}, nil)
)

func measureMemory(r *reported, read func(context.Context) ([]redisconn.Memory, error)) jobs.Job {
	return look("measure Redis's memory", memoryEvery, r.none, func(ctx context.Context) (time.Duration, error) {
		all, err := read(ctx)
		if err != nil {
			return 0, err
		}
		var metrics []prometheus.Metric
		for _, one := range all {
			metrics = append(metrics, gauge(redisMemoryUsed, float64(one.Used), one.Server), gauge(redisMemoryMax, float64(one.Max), one.Server))
		}
		r.set(metrics...)
		return 0, nil
	})
}
