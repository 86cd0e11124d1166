package ranking

// Measures the cost of a piece in Redis as a ratio to the cost of the same members without a script, in the
// same run on the same server.

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// BenchmarkApply applies pieces of a thousand members in three windows to boards of a million members
// (200,000 with -short). For each way it reports the members per second of Redis's CPU time
// (members/cpu-s), and that as a share of plain ZADDs (zadds) and of ZMSCORE and ZADD in a pipeline
// (pipelines).
//
//	go test -run - -bench Apply -benchtime 300x ./internal/ranking
func BenchmarkApply(b *testing.B) {
	population := 1_000_000
	if testing.Short() {
		population = 200_000
	}
	server := testenv.PrivateRedis(b)
	client := server.Client(b)
	for _, kind := range kinds {
		f := newFixture(b, client, "bench-"+string(kind))
		f.use(b, kind, 99_999_999)
		preload(b, f, population)
		b.Run(strings.Join(strings.Fields(server.Name()), "-")+"/"+string(kind), func(b *testing.B) {
			ways := []func(){func() { f.mustApply(b) }, f.pipelineWay(b, true), f.pipelineWay(b, false)}
			used := make([]time.Duration, len(ways))
			random := rand.New(rand.NewPCG(1, 2))
			for n := range b.N {
				for i := range ways {
					// Each way gets its own members, so that none finds data that another one has just
					// loaded into the CPU caches.
					f.fill(random, population)
					way := (n + i) % len(ways)
					before := redisCPU(b, client)
					ways[way]()
					used[way] += redisCPU(b, client) - before
				}
			}
			members := float64(b.N * benchMembers)
			b.ReportMetric(members/used[0].Seconds(), "members/cpu-s")
			b.ReportMetric(used[1].Seconds()/used[0].Seconds(), "pipelines")
			b.ReportMetric(used[2].Seconds()/used[0].Seconds(), "zadds")
			b.ReportMetric(0, "ns/op")
		})
		require.NoError(b, client.FlushAll(b.Context()).Err())
	}
}

// BenchmarkApplyNames reports Redis's CPU time as a share of the time that the same piece takes without
// names. All members have a name, and the events repeat it (same), change it (changed), or have none
// (unsaid).
//
//	go test -run - -bench ApplyNames -benchtime 300x ./internal/ranking
func BenchmarkApplyNames(b *testing.B) {
	const population = 200_000
	server := testenv.PrivateRedis(b)
	client := server.Client(b)
	f := newFixture(b, client, "bench-names")
	preload(b, f, population)
	at := int64(1000)
	name := func(say func(i int) string) {
		at++
		for i := range f.piece.Groups[0].Members {
			f.piece.Groups[0].Names = append(f.piece.Groups[0].Names, ledger.Name{Text: []byte(say(i)), Time: at})
		}
	}
	own := func(i int) string { return "called " + string(f.piece.Groups[0].Members[i].ID) }
	for from := 0; from < population; from += benchMembers {
		members := make([]ledger.Member, benchMembers)
		for i := range members {
			members[i] = ledger.Member{ID: benchID(from + i), Points: 1, Time: f.now}
		}
		f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
		name(own)
		f.mustApply(b)
	}
	ways := []func(){
		func() {},
		func() { name(own) },
		func() { name(func(i int) string { return fmt.Sprint(at, own(i)) }) },
		func() { name(func(int) string { return "" }) },
	}
	used := make([]time.Duration, len(ways))
	random := rand.New(rand.NewPCG(1, 2))
	for n := range b.N {
		for i := range ways {
			f.fill(random, population)
			way := (n + i) % len(ways)
			ways[way]()
			before := redisCPU(b, client)
			f.mustApply(b)
			used[way] += redisCPU(b, client) - before
		}
	}
	for way, unit := range map[int]string{1: "same", 2: "changed", 3: "unsaid"} {
		b.ReportMetric(used[way].Seconds()/used[0].Seconds(), unit)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkApplyRules reports Redis's CPU time of boards with other rules, as a share of the time that the
// same members take by the default rule. Each board has three windows.
//
//	go test -run - -bench ApplyRules -benchtime 300x ./internal/ranking
func BenchmarkApplyRules(b *testing.B) {
	const population = 200_000
	client := testenv.PrivateRedis(b).Client(b)
	ways := []struct{ name, rule string }{
		{"default", ""}, {"sum-of-3", "sum(gold:9999,silver:9999,bronze:9999)"},
		{"best-of-1", "best(lap:9999999:fewest)"}, {"best-of-3", "best(stage:999,revives:99:fewest,coins:9999)"}, {"last-of-1", "last(elo:9999999)"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	fixtures, fills := make([]*fixture, len(ways)), make([]func(), len(ways))
	for i, w := range ways {
		f := newFixture(b, client, fmt.Sprint("bench-rules-", i))
		r := f.byRule(b, w.rule)
		preload(b, f, 0)
		value := func(m *ledger.Member) {
			if r == nil {
				return
			}
			tuple := codec.Tuple{}
			for field := range r.Fields.Len() {
				tuple[field] = random.Int64N(3)
			}
			v := r.Value(&tuple, m.Time)
			m.Points, m.Time = v.Packed, v.Time
		}
		fills[i] = func() {
			f.fill(random, population)
			for m := range f.piece.Groups[0].Members {
				value(&f.piece.Groups[0].Members[m])
			}
		}
		for from := 0; from < population; from += benchMembers {
			fills[i]()
			for m := range f.piece.Groups[0].Members {
				f.piece.Groups[0].Members[m].ID = benchID(from + m)
			}
			f.mustApply(b)
		}
		fixtures[i] = f
	}
	used := make([]time.Duration, len(ways))
	b.ResetTimer()
	for n := range b.N {
		for i := range ways {
			way := (n + i) % len(ways)
			fills[way]()
			before := redisCPU(b, client)
			fixtures[way].mustApply(b)
			used[way] += redisCPU(b, client) - before
		}
	}
	for way := 1; way < len(ways); way++ {
		b.ReportMetric(used[way].Seconds()/used[0].Seconds(), ways[way].name)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkApplyBans reports Redis's CPU time as a share of the time that the same members take without
// bans: with one or a thousand bans of other members, and with a ban of one of the piece's members.
//
//	go test -run - -bench ApplyBans -benchtime 300x ./internal/ranking
func BenchmarkApplyBans(b *testing.B) {
	const population = 200_000
	client := testenv.PrivateRedis(b).Client(b)
	ways := []struct {
		name   string
		others int
		own    bool
	}{{name: "nobody"}, {name: "1-other", others: 1}, {name: "1000-others", others: 1000}, {name: "1-of-the-members", own: true}}
	fixtures := make([]*fixture, len(ways))
	for i, w := range ways {
		f := newFixture(b, client, fmt.Sprint("bench-bans-", i))
		preload(b, f, population)
		for n := range w.others {
			require.NoError(b, f.store.Ban(b.Context(), Ban{Member: fmt.Sprint("other-", n)}))
		}
		if w.own {
			require.NoError(b, f.store.Ban(b.Context(), Ban{Member: string(benchID(population - 1))}))
		}
		fixtures[i] = f
	}
	used := make([]time.Duration, len(ways))
	random := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for n := range b.N {
		for i := range ways {
			way := (n + i) % len(ways)
			f := fixtures[way]
			f.fill(random, population-1)
			f.piece.Groups[0].Members[0].ID = benchID(population - 1) // may be banned
			before := redisCPU(b, client)
			f.mustApply(b)
			used[way] += redisCPU(b, client) - before
		}
	}
	for way := 1; way < len(ways); way++ {
		b.ReportMetric(used[way].Seconds()/used[0].Seconds(), ways[way].name)
	}
	b.ReportMetric(0, "ns/op")
}

const benchMembers = 1000

func (f *fixture) fill(random *rand.Rand, population int) {
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: make([]ledger.Member, benchMembers)}}
	taken := map[int]bool{}
	for i := range benchMembers {
		m := random.IntN(population)
		for taken[m] {
			m = random.IntN(population)
		}
		taken[m] = true
		f.piece.Groups[0].Members[i] = ledger.Member{ID: benchID(m), Points: random.Int64N(100), Time: f.now + random.Int64N(3_600_000)}
	}
}

func benchID(m int) []byte { return fmt.Appendf(nil, "player-%07d", m) }

// benchPoints returns a member's initial points, up to a million.
func benchPoints(id []byte) int64 {
	h := fnv.New64a()
	_, _ = h.Write(id)
	return int64(h.Sum64() % 1_000_000)
}

func preload(b *testing.B, f *fixture, population int) {
	b.Helper()
	f.begin(b)
	f.piece = f.newPiece()
	random := rand.New(rand.NewPCG(3, 4))
	for from := 0; from < population; from += benchMembers {
		members := make([]ledger.Member, benchMembers)
		for i := range members {
			id := benchID(from + i)
			members[i] = ledger.Member{ID: id, Points: benchPoints(id), Time: f.now + random.Int64N(3_600_000)}
		}
		f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
		f.mustApply(b)
	}
}

// pipelineWay writes the same members without a script. It reads every window's scores in one round trip
// and writes them in the next. Without read, it makes up points that differ from the old ones about as much
// as after a piece.
func (f *fixture) pipelineWay(b *testing.B, read bool) func() {
	b.Helper()
	return func() {
		members := f.piece.Groups[0].Members
		ids := make([]string, len(members))
		for i, m := range members {
			ids[i] = string(m.ID)
		}
		old := make([]*redis.FloatSliceCmd, len(f.piece.Windows))
		ctx := context.Background()
		pipe := f.client.Pipeline()
		for w := range f.piece.Windows {
			if read {
				old[w] = pipe.ZMScore(ctx, f.store.keys.Window(&f.piece.Windows[w]), ids...)
			}
		}
		if read {
			_, err := pipe.Exec(ctx)
			require.NoError(b, err)
		}
		for w := range f.piece.Windows {
			layout := f.store.periods[f.piece.Windows[w].Period].Layout
			args := []any{"zadd", f.store.keys.Window(&f.piece.Windows[w])}
			for i, m := range members {
				ticks := layout.Ticks(f.piece.Windows[w].Start, f.piece.Windows[w].End, m.Time)
				points := benchPoints(m.ID) + m.Points
				if read {
					had, before, err := layout.Decode(old[w].Val()[i])
					require.NoError(b, err)
					points, ticks = m.Points+had, min(ticks, before)
				}
				score, err := layout.Encode(points, ticks)
				require.NoError(b, err)
				args = append(args, strconv.FormatFloat(score, 'g', -1, 64), ids[i])
			}
			pipe.Do(ctx, args...)
		}
		_, err := pipe.Exec(ctx)
		require.NoError(b, err)
	}
}

// redisCPU returns the CPU time that the server's process has used so far.
func redisCPU(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	info, err := client.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	var sum float64
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if text, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				require.NoError(b, err)
				sum += seconds
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// BenchmarkEncode measures what a piece costs this process, except for sending it.
func BenchmarkEncode(b *testing.B) {
	f := offlineFixture(b)
	f.fill(rand.New(rand.NewPCG(1, 2)), 1_000_000)
	b.ReportAllocs()
	e := new(encoder)
	for b.Loop() {
		if _, err := e.encode(f.store, &f.piece, "20"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchMembers), "ns/member")
}
