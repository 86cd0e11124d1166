package boards

// The cost of reads by the number of shards, all on one server. Several servers are read concurrently, so
// this is the upper bound.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// BenchmarkReads reads a board of 200,000 members (20,000 with -short): the top 100, the ranks of 100
// members and of 1,000, ten rows around a member, a page half way down by its offset, by a pivot and in a
// range, and the last 100; each with and without ties. It reports round trips and Redis's CPU time.
//
//	go test -run - -bench Reads ./internal/ranking/boards
func BenchmarkReads(b *testing.B) {
	population := 200_000
	if testing.Short() {
		population = 20_000
	}
	client := testenv.PrivateRedis(b).Client(b)
	counted := new(trips)
	client.AddHook(counted)
	for _, of := range []ledger.Shards{1, 4, 16, 64} {
		f := newFixture(b, client, fmt.Sprint("bench", of), of, codec.Readable)
		random := rand.New(rand.NewPCG(1, 2))
		var all []ranking.Standing
		for i := range population {
			all = append(all, f.standing(fmt.Sprintf("player-%07d", i), random.Int64N(100_000), random.Int64N(1_000_000)))
		}
		for some := range slices.Chunk(all, 10_000) {
			f.put(b, some...)
		}
		members, many := make([]string, 100), make([]string, MostMembers)
		sample := func(members []string) []string {
			for i := range members {
				members[i] = all[random.IntN(population)].Member
			}
			return members
		}
		tied, middle := f.With(Extra{Ties: true}), ranking.Pivot{Score: 50_000}
		for name, read := range map[string]func() (ranking.Board, error){
			"top100":        func() (ranking.Board, error) { return f.Top(b.Context(), "global", f.window, 0, 100) },
			"top100tied":    func() (ranking.Board, error) { return tied.Top(b.Context(), "global", f.window, 0, 100) },
			"bottom100":     func() (ranking.Board, error) { return f.Bottom(b.Context(), "global", f.window, 0, 100) },
			"after100":      func() (ranking.Board, error) { return f.After(b.Context(), "global", f.window, middle, 100) },
			"after100tied":  func() (ranking.Board, error) { return tied.After(b.Context(), "global", f.window, middle, 100) },
			"aroundscore10": func() (ranking.Board, error) { return f.AroundScore(b.Context(), "global", f.window, 50_000, 10) },
			"range100": func() (ranking.Board, error) {
				return f.Range(b.Context(), "global", f.window, Range{Low: 20_000, High: 60_000}, 100)
			},
			"counts10": func() (ranking.Board, error) {
				return f.With(Extra{Counts: []float64{1, 1e4, 2e4, 3e4, 4e4, 5e4, 6e4, 7e4, 8e4, 9e4}}).Top(b.Context(), "global", f.window, 0, 0)
			},
			"ranks100":      func() (ranking.Board, error) { return f.Rank(b.Context(), "global", f.window, sample(members)...) },
			"ranks1000":     func() (ranking.Board, error) { return f.Rank(b.Context(), "global", f.window, sample(many)...) },
			"ranks1000tied": func() (ranking.Board, error) { return tied.Rank(b.Context(), "global", f.window, sample(many)...) },
			"around10": func() (ranking.Board, error) {
				return f.Around(b.Context(), "global", f.window, all[random.IntN(population)].Member, 10)
			},
			"halfway100": func() (ranking.Board, error) {
				return f.Top(b.Context(), "global", f.window, population/2, 100)
			},
		} {
			b.Run(fmt.Sprintf("shards=%d/%s", of, name), func(b *testing.B) {
				_, err := read()
				require.NoError(b, err)
				n, used := 0, redisCPU(b, client)
				counted.n.Store(0)
				for b.Loop() {
					_, err := read()
					require.NoError(b, err)
					n++
				}
				trips := counted.n.Load() // read before redisCPU, which takes one more
				b.ReportMetric(1e3*(redisCPU(b, client)-used)/float64(n), "redis-cpu-ms/op")
				b.ReportMetric(float64(trips)/float64(n), "trips/op")
			})
		}
		require.NoError(b, client.FlushAll(b.Context()).Err())
	}
}

// redisCPU returns the CPU time that Redis has used, in seconds.
func redisCPU(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.InfoMap(b.Context(), "cpu").Result()
	require.NoError(b, err)
	sum := 0.0
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		n, err := strconv.ParseFloat(info["CPU"][name], 64)
		require.NoError(b, err)
		sum += n
	}
	return sum
}
