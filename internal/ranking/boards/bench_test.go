package boards

// What a read costs as shards grow in number, all of them on one server: on several they are asked
// at once, so that this is the most it may cost.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// BenchmarkReads reads a board of 200,000 members (20,000 with -short): the top 100, the ranks of
// 100 members, ten rows around a member, and a page half way down; with the round trips of each.
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
		members := make([]string, 100)
		for name, read := range map[string]func() (ranking.Board, error){
			"top100": func() (ranking.Board, error) { return f.Top(b.Context(), "global", f.window, 0, 100) },
			"ranks100": func() (ranking.Board, error) {
				for i := range members {
					members[i] = all[random.IntN(population)].Member
				}
				return f.Rank(b.Context(), "global", f.window, members...)
			},
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
				counted.n.Store(0)
				n := 0
				for b.Loop() {
					_, err := read()
					require.NoError(b, err)
					n++
				}
				b.ReportMetric(float64(counted.n.Load())/float64(n), "trips/op")
			})
		}
		require.NoError(b, client.FlushAll(b.Context()).Err())
	}
}
