package shadow

// The cost of a swap by the number of windows: the time of its script, during which Redis is blocked, and
// the work of Swap under the hold.

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

// BenchmarkSwap requires a real redis-server. It reports, per window, Redis's CPU time of a call to Swap,
// and the shortest duration of the script and of Swap.
//
//	go test -run - -bench Swap -benchtime 3x ./internal/ranking/shadow
func BenchmarkSwap(b *testing.B) {
	for _, windows := range []int{1000, 50_000} {
		b.Run(fmt.Sprint(windows), func(b *testing.B) {
			server := testenv.PrivateRedis(b)
			client := server.Client(b)
			require.NoError(b, client.ConfigSet(b.Context(), "slowlog-log-slower-than", "0").Err())
			f := newFixture(b, client, "bench")
			f.Begin(b)
			f.opened(b, f.Store, windows)
			var used time.Duration
			script, took := time.Hour, time.Hour
			for b.Loop() {
				r, err := Lock(b.Context(), f.Store, "me", lease)
				require.NoError(b, err)
				f.fold(b, r, ledger.Origin{})
				f.opened(b, r.shadow, windows)
				f.held(b, r)
				require.NoError(b, client.Do(b.Context(), "slowlog", "reset").Err())
				before, began := redisCPU(b, client), time.Now()
				_, err = r.Swap(b.Context(), Choice{})
				took = min(took, time.Since(began))
				used += redisCPU(b, client) - before
				require.NoError(b, err)
				slow, err := client.SlowLogGet(b.Context(), 1024).Result()
				require.NoError(b, err)
				for _, l := range slow {
					if len(l.Args) > 3 && l.Args[3] == f.Store.Keys().Hold() {
						script = min(script, l.Duration)
					}
				}
				require.NoError(b, r.Unlink(b.Context(), 0))
				require.NoError(b, r.Close(b.Context()))
			}
			each := float64(windows)
			b.ReportMetric(float64(used.Microseconds())/each/float64(b.N), "cpu-µs/window")
			b.ReportMetric(float64(script.Microseconds())/each, "script-µs/window")
			b.ReportMetric(float64(took.Microseconds())/each, "swap-µs/window")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// opened lists the given number of windows, each with one member.
func (f *fixture) opened(b *testing.B, s keyed, windows int) {
	b.Helper()
	w := f.Piece.Windows[0]
	listing := rankingtest.Entry(w, w.End+retention.Milliseconds())
	for from := 0; from < windows; from += 1000 {
		pipe := f.Client.Pipeline()
		for i := from; i < min(from+1000, windows); i++ {
			w.Board = fmt.Sprintf("board-%d", i)
			pipe.HSet(b.Context(), s.Keys().Windows(), w.Listing(), listing)
			pipe.ZAdd(b.Context(), s.Keys().Window(&w), redis.Z{Score: 1, Member: "m"})
			pipe.PExpire(b.Context(), s.Keys().Window(&w), time.Hour)
		}
		_, err := pipe.Exec(b.Context())
		require.NoError(b, err)
	}
}
