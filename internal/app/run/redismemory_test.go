package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/redisconn"
)

func TestTheMemoryOfRedisIsReportedWhileItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newReported(redisMemoryUsed, redisMemoryMax)
		var away atomic.Bool
		look := func(context.Context) ([]redisconn.Memory, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return []redisconn.Memory{{Server: "a:1", Used: 7, Max: 9}, {Server: "b:1", Used: 8}}, nil
		}
		core, logs := observer.New(zap.DebugLevel)
		go jobs.Repeat(t.Context(), zap.New(core), measureMemory(m, look))
		synctest.Wait()
		const limit = "# HELP standings_redis_memory_max_bytes The server's maxmemory; 0 for no limit.\n# TYPE standings_redis_memory_max_bytes gauge\n" +
			"standings_redis_memory_max_bytes{server=\"a:1\"} 9\nstandings_redis_memory_max_bytes{server=\"b:1\"} 0\n"
		const used = "# HELP standings_redis_memory_used_bytes The server's used_memory. Absent if the server does not report it.\n" +
			"# TYPE standings_redis_memory_used_bytes gauge\nstandings_redis_memory_used_bytes{server=\"a:1\"} 7\nstandings_redis_memory_used_bytes{server=\"b:1\"} 8\n"
		reports(t, m, limit+used)
		away.Store(true)
		time.Sleep(3 * memoryEvery)
		synctest.Wait()
		if n := testutil.CollectAndCount(m); n != 0 || logs.Len() != 1 {
			t.Errorf("%d values of a Redis that is away, and %d lines of it", n, logs.Len())
		}
		away.Store(false)
		time.Sleep(2 * memoryEvery)
		synctest.Wait()
		reports(t, m, limit+used)
	})
}
