package rebuild

// The cost of a rebuild by the number of windows, which every producer can increase by naming new boards.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// manyBoards returns a place with the given number of windows, each with one member; an event names eight
// boards.
func manyBoards(t testing.TB, on *redis.Client, windows int) *place {
	t.Helper()
	return newPlaceOf(t, on, 1, windows/8, func(i int) []byte {
		names := make([]string, 8)
		for j := range names {
			names[j] = fmt.Sprintf(`"b%d"`, 8*i+j)
		}
		return fmt.Appendf(nil, `{"user_id":"m","points":1,"board":[%s]}`, strings.Join(names, ","))
	})
}

// pauses measures the longest duration of a PING, until longest is called.
func pauses(t testing.TB, on *redis.Client) (longest func() time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var worst time.Duration
	var pinging sync.WaitGroup
	pinging.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if err := on.Ping(ctx).Err(); err == nil {
				worst = max(worst, time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
	})
	return func() time.Duration {
		stop()
		pinging.Wait()
		return worst
	}
}

// BenchmarkARebuildByWindows requires a real redis-server.
//
//	go test -run '^$' -bench ByWindows -benchtime 1x ./internal/rebuild
func BenchmarkARebuildByWindows(b *testing.B) {
	for _, windows := range []int{1000, 10_000, 50_000, 200_000} {
		b.Run(fmt.Sprint(windows), func(b *testing.B) {
			server := testenv.PrivateRedis(b)
			p := manyBoards(b, server.Client(b), windows)
			beside := server.Client(b)
			require.Equal(b, int64(windows), beside.HLen(b.Context(), p.key("windows")).Val())
			require.NoError(b, beside.ConfigSet(b.Context(), "slowlog-log-slower-than", "1000").Err())
			var held, worst, slowest time.Duration
			for b.Loop() {
				require.NoError(b, beside.Do(b.Context(), "slowlog", "reset").Err())
				longest := pauses(b, beside)
				r, err := p.job.Run(b.Context())
				worst = max(worst, longest())
				require.NoError(b, err)
				require.True(b, r.Swapped)
				held = max(held, r.Held)
				slow, err := beside.SlowLogGet(b.Context(), 1024).Result()
				require.NoError(b, err)
				for _, l := range slow {
					slowest = max(slowest, l.Duration)
					if testing.Verbose() && l.Duration > 20*time.Millisecond {
						b.Logf("%v: %.120v", l.Duration, l.Args)
					}
				}
			}
			require.Equal(b, int64(windows), beside.HLen(b.Context(), p.key("windows")).Val())
			b.ReportMetric(float64(held.Milliseconds()), "held-ms")
			b.ReportMetric(float64(worst.Milliseconds()), "longest-ping-ms")
			b.ReportMetric(float64(slowest.Milliseconds()), "slowest-command-ms")
		})
	}
}
