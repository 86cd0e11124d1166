package ranking

// The arithmetic of layouts.lua equals that of package codec, to the last bit. The tests send golden
// vectors, which neither of the two computed, and random ones through a server and back.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

type golden struct {
	Layouts []struct {
		Kind   codec.Kind
		Max    int64
		K      int
		Tick   int64
		Scores []struct {
			Points, Ticks int64
			Bits          string
		}
		Refused []struct{ Bits string }
		Times   []struct{ Start, End, At, Ticks int64 }
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("../codec/testdata/golden.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.Layouts)
	return g
}

func bits(t tester, text string) uint64 {
	n, err := strconv.ParseUint(text, 16, 64)
	require.NoError(t, err)
	return n
}

// laidOut replaces the store by one whose weekly windows have a layout and never expire.
func (f *fixture) laidOut(t tester, l codec.Layout) {
	t.Helper()
	f.store = f.storeOf(t, func(c *Config) { c.Periods["weekly"] = Period{Layout: l, Retention: 200 * 365 * 24 * time.Hour} })
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Schema(), f.store.Schema(), 0).Err())
}

// spread returns a window in which each of a layout's ticks has a time.
func spread(board string, l codec.Layout) ledger.Window {
	end := time.Now().UnixMilli()
	return ledger.Window{Board: board, Period: "weekly", Name: "w", Start: end - l.Tick<<l.K, End: end}
}

// vector is a standing, or a change of one.
type vector struct{ points, ticks int64 }

// put applies deltas to the members of a window, and requires the scores that codec encodes for the
// standings want.
func (f *fixture) put(t tester, l codec.Layout, w ledger.Window, deltas, want []vector) {
	t.Helper()
	f.piece.Windows = []ledger.Window{w}
	members := make([]ledger.Member, len(deltas))
	ids := make([]string, len(deltas))
	for i, d := range deltas {
		ids[i] = fmt.Sprint("u", i)
		members[i] = ledger.Member{ID: []byte(ids[i]), Points: d.points, Time: w.End - 1 - d.ticks*l.Tick}
	}
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: members}}
	f.mustApply(t)
	for i, got := range f.scores(t, w, ids) {
		score, err := l.Encode(want[i].points, want[i].ticks)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(score), math.Float64bits(got), "%v: %+v made %+v, got %v for %v", l, deltas[i], want[i], got, score)
	}
}

func (f *fixture) scores(t tester, w ledger.Window, ids []string) []float64 {
	t.Helper()
	scores, err := f.client.ZMScore(t.Context(), f.store.keys.Window(&w), ids...).Result()
	require.NoError(t, err)
	require.Len(t, scores, len(ids))
	return scores
}

func TestTheScriptWritesTheGoldenScores(t *testing.T) {
	for _, g := range readGolden(t).Layouts {
		l := codec.Layout{Kind: g.Kind, K: g.K, Tick: g.Tick, Max: g.Max}
		for _, size := range []int{100, len(g.Scores)} { // listpack and skip list
			t.Run(fmt.Sprintf("%s-%d-%d-by%d", g.Kind, g.K, g.Max, size), func(t *testing.T) {
				f := fixed(t)
				f.laidOut(t, l)
				for from := 0; from < len(g.Scores); from += size {
					part := g.Scores[from:min(from+size, len(g.Scores))]
					w := spread(fmt.Sprint("b", from), l)
					var first, deltas, sums []vector
					ids := make([]string, len(part))
					for i, s := range part {
						ids[i] = fmt.Sprint("u", i)
						first = append(first, vector{s.Points, s.Ticks})
						// Change it to the standing of another vector; the later time counts.
						to := g.Scores[(from+i*7+3)%len(g.Scores)]
						deltas = append(deltas, vector{to.Points - s.Points, to.Ticks})
						sums = append(sums, vector{to.Points, min(s.Ticks, to.Ticks)})
					}
					f.put(t, l, w, first, first)
					for i, score := range f.scores(t, w, ids) {
						require.Equal(t, bits(t, part[i].Bits), math.Float64bits(score), "%+v", part[i])
					}
					f.put(t, l, w, deltas, sums)
					encoded(t, f, w, len(part))
				}
			})
		}
	}
}

// encoded requires Redis to store a small window as a listpack, and a large one otherwise.
func encoded(t *testing.T, f *fixture, w ledger.Window, members int) {
	t.Helper()
	if testenv.Redis(t).Embedded() {
		return // the embedded server has no encodings
	}
	encoding, err := f.client.ObjectEncoding(t.Context(), f.store.keys.Window(&w)).Result()
	require.NoError(t, err)
	if members > 128 {
		require.Equal(t, "skiplist", encoding)
	} else {
		require.Contains(t, []string{"listpack", "ziplist"}, encoding)
	}
}

func TestTheScriptRefusesTheGoldenStrangers(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, g := range readGolden(t).Layouts {
		l := codec.Layout{Kind: g.Kind, K: g.K, Tick: g.Tick, Max: g.Max}
		t.Run(fmt.Sprintf("%s-%d-%d", g.Kind, g.K, g.Max), func(t *testing.T) {
			f := fixed(t)
			f.laidOut(t, l)
			w := spread("b", l)
			f.put(t, l, w, []vector{{1, 0}, {0, 0}}, []vector{{1, 0}, {0, 0}})
			for _, r := range g.Refused {
				score := math.Float64frombits(bits(t, r.Bits))
				if math.IsNaN(score) {
					continue // a sorted set can't hold NaN
				}
				require.NoError(t, f.client.ZAdd(t.Context(), f.store.keys.Window(&w), redis.Z{Score: score, Member: "u1"}).Err())
				f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
				require.Equal(t, ledger.Answer{Outcome: ledger.Foreign, Window: w.Listing(), Members: []string{"u1"}}, f.apply(t), "%v as %v", score, l)
			}
		})
	}
}

func layouts() *rapid.Generator[codec.Layout] {
	return rapid.Custom(func(t *rapid.T) codec.Layout {
		most := int64(1) << rapid.IntRange(0, 51).Draw(t, "bits of max")
		most = max(1, most-rapid.Int64Range(-1, 1).Draw(t, "beside"))
		most = rapid.OneOf(rapid.Just(most), rapid.Int64Range(1, most), rapid.Just(int64(1<<52-1))).Draw(t, "max")
		length := rapid.OneOf(rapid.Int64Range(1, 5000), rapid.Int64Range(1, 8796*3600*1000)).Draw(t, "length ms")
		l, err := codec.New(rapid.SampledFrom(kinds).Draw(t, "kind"), time.Duration(length)*time.Millisecond, most)
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

// within draws values that are often the ends of [from, to], zero and their neighbours.
func within(from, to int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		near := rapid.Int64Range(0, 2).Draw(t, "near")
		n := rapid.OneOf(rapid.Int64Range(from, to), rapid.SampledFrom([]int64{from + near, to - near, near, -near})).Draw(t, "n")
		return min(max(n, from), to)
	})
}

func TestTheScriptAddsAsTheCodecDoes(t *testing.T) {
	f := fixed(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		f.laidOut(t, l)
		n++
		w := spread(fmt.Sprint("b", n), l)
		members := rapid.SampledFrom([]int{1, 20, 200}).Draw(t, "members")
		points, ticks := within(-l.Max, l.Max), within(0, 1<<l.K-1)
		var first, deltas, sums []vector
		for range members {
			had := vector{points.Draw(t, "points"), ticks.Draw(t, "ticks")}
			to := points.Draw(t, "to")
			delta := vector{to - had.points, ticks.Draw(t, "then")}
			first, deltas = append(first, had), append(deltas, delta)
			sums = append(sums, vector{to, min(had.ticks, delta.ticks)})
		}
		f.put(t, l, w, first, first)
		f.put(t, l, w, deltas, sums)
	})
}
