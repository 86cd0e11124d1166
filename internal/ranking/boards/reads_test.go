package boards

// One sorted list answers whatever is read around a place: the model of reads with ties, counts,
// pivots and ranges.

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// list is the model.
type list []ranking.Standing

// tied says of every standing how many have more, and at least as many.
func (l list) tied() list {
	all := make(list, len(l))
	for i := range l {
		all[i] = l[i]
		for j := range l {
			switch order := better(&l[j], &l[i]); {
			case order < 0:
				all[i].More++
				all[i].AtLeast++
			case order == 0:
				all[i].AtLeast++
			}
		}
	}
	return all
}

// rows are those from one index to another, as far as there are.
func (l list) rows(from, to int) []ranking.Standing {
	from, to = max(0, from), min(to, len(l))
	if from >= to {
		return nil
	}
	return l[from:to]
}

// full are so many rows above a place and below it, and at an end as many in all.
func (l list) full(place, above, below int) []ranking.Standing {
	n := above + below
	from := max(0, min(place-above, len(l)-n))
	return l.rows(from, from+n)
}

// least is how many have at least a score.
func (l list) least(score float64) (n int) {
	for _, st := range l {
		if st.Score >= score {
			n++
		}
	}
	return n
}

// above is how many are above a pivot, and upTo how many aren't below it.
func (l list) above(p ranking.Pivot) (above, upTo int) {
	for _, st := range l {
		if st.Score > p.Score || st.Score == p.Score && st.Member > p.Member {
			above++
		} else if st.Pivot() == p {
			upTo = 1
		}
	}
	return above, above + upTo
}

// drawn is a board with few scores, and the model of it.
func drawn(t *rapid.T, short *rapid.Generator[string], newOne func(*rapid.T) *fixture) (*fixture, list) {
	f := newOne(t)
	names, n := rapid.OneOf(rapid.StringN(1, 8, 64), short), rapid.IntRange(0, 60).Draw(t, "members")
	if rapid.Bool().Draw(t, "on one shard") {
		names = names.Filter(func(id string) bool { return f.home(id) == 0 })
	}
	// Those of shard 0 may have the most of all, or the least.
	lean := rapid.Int64Range(-1, 1).Draw(t, "lean")
	var all []ranking.Standing
	for _, id := range rapid.SliceOfNDistinct(names, n, n, rapid.ID).Draw(t, "ids") {
		points := rapid.Int64Range(-1, 1).Draw(t, "points")
		if f.home(id) == 0 {
			points += lean
		}
		all = append(all, f.standing(id, points, rapid.Int64Range(0, 2).Draw(t, "ticks")))
	}
	f.put(t, all...)
	return f, ranked(all)
}

func TestEveryReadAroundAPlaceIsOfOneSortedList(t *testing.T) {
	client, prefix, n := testenv.RedisClient(t), testenv.Prefix(t), 0
	short := rapid.StringOfN(rapid.SampledFrom([]rune("abB-é")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		n++
		f, plain := drawn(t, short, func(t *rapid.T) *fixture {
			of := rapid.SampledFrom(numbers).Draw(t, "shards")
			kind := rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide}).Draw(t, "layout")
			if rapid.Bool().Draw(t, "by a rule") {
				return byRule(t, client, fmt.Sprint(prefix, n), of, kind)
			}
			return newFixture(t, client, fmt.Sprint(prefix, n), of, kind)
		})
		// Scores of members, those where their points begin, of nobody, and the ends.
		scores := rapid.Custom(func(t *rapid.T) float64 {
			st := f.standing("x", rapid.Int64Range(-2, 3).Draw(t, "points"), rapid.Int64Range(0, 3).Draw(t, "ticks"))
			low, high, err := f.bounds(&ranking.Board{Name: f.board, Window: f.window, Fields: f.Shards()[0].Fields(f.board)}, &st)
			if err != nil {
				t.Fatal(err)
			}
			return rapid.SampledFrom([]float64{st.Score, low, high, math.Inf(1), math.Inf(-1)}).Draw(t, "score")
		})
		extra := Extra{
			Ties: rapid.Bool().Draw(t, "ties"), Full: rapid.Bool().Draw(t, "full"),
			Counts: rapid.SliceOfN(scores, 0, 3).Draw(t, "counts"),
		}
		all := plain
		if extra.Ties {
			all = plain.tied()
		}
		b, size := f.With(extra), rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 5))
		check := func(what string, got ranking.Board, err error, want []ranking.Standing, place int) {
			require.NoError(t, err, what)
			if len(want) == 0 {
				want = nil
			}
			require.Equal(t, want, got.Standings, what)
			require.Equal(t, int64(place), got.Place, what)
			require.Equal(t, int64(len(all)), got.Members, what)
			require.Len(t, got.Counts, len(extra.Counts), what)
			for i, score := range extra.Counts {
				require.Equal(t, int64(all.least(score)), got.Counts[i], "%s: with at least %v", what, score)
			}
			require.Equal(t, map[string]string{"points/0": "10"}, got.Beside.Ledger, what)
		}
		ctx, offset, limit := t.Context(), size.Draw(t, "offset"), size.Draw(t, "limit")

		got, err := b.Top(ctx, f.board, f.window, offset, limit)
		got.Place = 0
		check("top", got, err, all.rows(offset, offset+limit), 0)
		got, err = b.Bottom(ctx, f.board, f.window, offset, limit)
		got.Place = 0
		check("bottom", got, err, all.rows(len(all)-offset-limit, len(all)-offset), 0)

		pivot := ranking.Pivot{Score: scores.Draw(t, "pivot"), Member: rapid.OneOf(rapid.Just(""), short).Draw(t, "pivot's id")}
		if len(all) > 0 && rapid.Bool().Draw(t, "a member's") {
			row := rapid.SampledFrom(all).Draw(t, "pivot's row")
			pivot = row.Pivot()
		}
		above, upTo := all.above(pivot)
		got, err = b.After(ctx, f.board, f.window, pivot, limit)
		check("after", got, err, all.rows(upTo, upTo+limit), upTo)
		got, err = b.Before(ctx, f.board, f.window, pivot, limit)
		check("before", got, err, all.rows(above-limit, above), above)

		score := scores.Draw(t, "score")
		place, around := all.least(score), size.Draw(t, "around")
		want := all.rows(place-around, place+around)
		if extra.Full {
			want = all.full(place, around, around)
		}
		got, err = b.AroundScore(ctx, f.board, f.window, score, around)
		check("around a score", got, err, want, place)

		low, high := scores.Draw(t, "low"), scores.Draw(t, "high")
		low, high = min(low, high), max(low, high)
		in := Range{Low: low, High: high, Offset: rapid.IntRange(0, 20).Draw(t, "offset in it")}
		first := all.least(high)
		if rapid.Bool().Draw(t, "from a pivot on") {
			in.After = &pivot
			first = max(first, upTo)
		}
		got, err = b.Range(ctx, f.board, f.window, in, limit)
		check("range", got, err, all.rows(first+in.Offset, min(first+in.Offset+limit, all.least(low))), first+in.Offset)
		require.Equal(t, int64(all.least(low)-all.least(high)), got.InRange)

		looked(t, b, f, all, extra)
	})
}

// However members are dealt out: one shard may have all of what is nearest to a place.
func TestRowsAroundAPlaceAreExactWhereOneShardHasAllOfThem(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 16, codec.Readable)
	var all list
	for i := 0; len(all) < 1500; i++ {
		// Shard 3 has the 500 in the middle, and of the others each some.
		if id := fmt.Sprint("u", i); f.home(id) != 3 {
			all = append(all, f.standing(id, int64(i%2*2000+i%700), 0))
		} else if len(all)%3 == 0 {
			all = append(all, f.standing(id, int64(1000+i%700), 0))
		}
	}
	for i := 0; len(all) < 2000; i++ {
		if id := fmt.Sprint("v", i); f.home(id) == 3 {
			all = append(all, f.standing(id, int64(1000+i%700), 0))
		}
	}
	f.put(t, all...)
	all = ranked(all)
	for _, limit := range []int{1, 10, 100, 400, 700} {
		for _, score := range []float64{900, 1000, 1300, 1700, 1800} {
			place := all.least(score)
			b, err := f.AroundScore(t.Context(), "global", f.window, score, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place-limit, place+limit), b.Standings)
			pivot := ranking.Pivot{Score: score}
			b, err = f.After(t.Context(), "global", f.window, pivot, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place, place+limit), b.Standings)
			b, err = f.Before(t.Context(), "global", f.window, pivot, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place-limit, place), b.Standings)
			b, err = f.Range(t.Context(), "global", f.window, Range{Low: score - 200, High: score, Offset: 3}, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place+3, min(place+3+limit, all.least(score-200))), b.Standings)
		}
		offset := len(all) - all.least(1000)
		b, err := f.Bottom(t.Context(), "global", f.window, offset, limit)
		require.NoError(t, err)
		require.Equal(t, all.rows(len(all)-offset-limit, len(all)-offset), b.Standings)
	}
}

// looked checks who is looked up, and the rows around one of them.
func looked(t *rapid.T, b *Boards, f *fixture, all list, extra Extra) {
	ids, byID := []string{"nobody at all", "nobody else"}, map[string]ranking.Standing{}
	for _, st := range all {
		ids = append(ids, st.Member)
		byID[st.Member] = st
	}
	ids = rapid.Permutation(ids).Draw(t, "asked")
	var want []ranking.Standing
	for _, id := range ids {
		st := byID[id]
		st.Member = id
		want = append(want, st)
	}
	got, err := b.Rank(t.Context(), f.board, f.window, ids...)
	require.NoError(t, err)
	require.Equal(t, want, got.Standings)
	require.Equal(t, int64(0), got.Place)
	require.Len(t, got.Counts, len(extra.Counts))

	n := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 5)).Draw(t, "around a member")
	got, err = b.Around(t.Context(), f.board, f.window, ids[0], n)
	require.NoError(t, err)
	if at := int(byID[ids[0]].Rank) - 1; at < 0 {
		want = want[:1]
	} else if want = all.rows(at-n, at+n+1); extra.Full {
		want = all.full(at, n, n+1)
	}
	require.Equal(t, want, got.Standings)
	require.Len(t, got.Counts, len(extra.Counts))
	for i, score := range extra.Counts {
		require.Equal(t, int64(all.least(score)), got.Counts[i])
	}
}

func TestCountsAreOfEveryScore(t *testing.T) {
	for _, of := range numbers {
		f, _ := some(t, of) // points 0 to 199
		b, err := f.Counts(t.Context(), "global", f.window, 200, 199, 0, math.Inf(-1), 100)
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1, 200, 200, 100}, b.Counts)
		require.Empty(t, b.Standings)
	}
}

func TestWhatThereCantBeIsRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, of := range []int{1, 3} {
		f, trips := some(t, numbers[of/2*2])
		trips.n.Store(0)
		ctx, nan := t.Context(), math.NaN()
		odd := f.With(Extra{Counts: []float64{1, nan}})
		for name, read := range map[string]func() (ranking.Board, error){
			"bottom, offset": func() (ranking.Board, error) { return f.Bottom(ctx, "global", f.window, -1, 1) },
			"bottom, limit":  func() (ranking.Board, error) { return f.Bottom(ctx, "global", f.window, 0, -1) },
			"after, limit":   func() (ranking.Board, error) { return f.After(ctx, "global", f.window, ranking.TopPivot(), -1) },
			"after, pivot":   func() (ranking.Board, error) { return f.After(ctx, "global", f.window, ranking.Pivot{Score: nan}, 1) },
			"before, limit":  func() (ranking.Board, error) { return f.Before(ctx, "global", f.window, ranking.TopPivot(), -1) },
			"around, n":      func() (ranking.Board, error) { return f.Around(ctx, "global", f.window, "u1", -1) },
			"score, n":       func() (ranking.Board, error) { return f.AroundScore(ctx, "global", f.window, 1, -1) },
			"score":          func() (ranking.Board, error) { return f.AroundScore(ctx, "global", f.window, nan, 1) },
			"counts":         func() (ranking.Board, error) { return f.Counts(ctx, "global", f.window, 1, nan) },
			"range, limit":   func() (ranking.Board, error) { return f.Range(ctx, "global", f.window, Range{Low: 1, High: 2}, -1) },
			"range, offset": func() (ranking.Board, error) {
				return f.Range(ctx, "global", f.window, Range{Low: 1, High: 2, Offset: -1}, 1)
			},
			"range":      func() (ranking.Board, error) { return f.Range(ctx, "global", f.window, Range{Low: 2, High: 1}, 1) },
			"range, low": func() (ranking.Board, error) { return f.Range(ctx, "global", f.window, Range{Low: nan, High: 1}, 1) },
			"range, pivot": func() (ranking.Board, error) {
				return f.Range(ctx, "global", f.window, Range{After: &ranking.Pivot{Score: nan}}, 1)
			},
			"extra, top":      func() (ranking.Board, error) { return odd.Top(ctx, "global", f.window, 0, 1) },
			"extra, far down": func() (ranking.Board, error) { return odd.Top(ctx, "global", f.window, 9000, 1) },
			"extra, bottom":   func() (ranking.Board, error) { return odd.Bottom(ctx, "global", f.window, 9000, 1) },
			"extra, rank":     func() (ranking.Board, error) { return odd.Rank(ctx, "global", f.window, "u1") },
			"extra, around":   func() (ranking.Board, error) { return odd.Around(ctx, "global", f.window, "u1", 1) },
			"members": func() (ranking.Board, error) {
				return f.Rank(ctx, "global", f.window, make([]string, MostMembers+1)...)
			},
		} {
			_, err := read()
			require.ErrorContains(t, err, "read global: ", name)
		}
		require.Zero(t, trips.n.Load())
	}
}

// A read of a window that isn't there, or that a shard has lost, says so, whatever it reads.
func TestEveryReadReportsWhatIsLostAndWhatIsBeside(t *testing.T) {
	for _, of := range numbers[:3] {
		f, _ := some(t, of)
		reads := func(b *Boards) map[string]func(context.Context) (ranking.Board, error) {
			return map[string]func(context.Context) (ranking.Board, error){
				"bottom": func(ctx context.Context) (ranking.Board, error) { return b.Bottom(ctx, "global", f.window, 0, 10) },
				"after": func(ctx context.Context) (ranking.Board, error) {
					return b.After(ctx, "global", f.window, ranking.TopPivot(), 10)
				},
				"before": func(ctx context.Context) (ranking.Board, error) {
					return b.Before(ctx, "global", f.window, ranking.Pivot{}, 10)
				},
				"score":  func(ctx context.Context) (ranking.Board, error) { return b.AroundScore(ctx, "global", f.window, 7, 10) },
				"counts": func(ctx context.Context) (ranking.Board, error) { return b.Counts(ctx, "global", f.window, 7) },
				"range": func(ctx context.Context) (ranking.Board, error) {
					return b.Range(ctx, "global", f.window, Range{1, 9, 0, nil}, 10)
				},
				"far": func(ctx context.Context) (ranking.Board, error) {
					return b.Range(ctx, "global", f.window, Range{1, 9, 5000, nil}, 10)
				},
				"deep": func(ctx context.Context) (ranking.Board, error) { return b.Bottom(ctx, "global", f.window, 5000, 10) },
			}
		}
		ties := f.With(Extra{Ties: true})
		f.client.HSet(t.Context(), f.Shards()[0].Keys().Origin(), "points/0", fmt.Sprintf("5 %d", f.window.Start+1))
		f.client.Del(t.Context(), f.key(0))
		for name, read := range reads(ties) {
			b, err := read(t.Context())
			require.NoError(t, err, name)
			require.Equal(t, ranking.LostBoard, b.Lost, name)
			require.Equal(t, []string{"points/0"}, b.Incomplete, name)
			require.Equal(t, "10", b.Beside.Ledger["points/0"], name)
			require.True(t, b.Listed, name)
		}
		none := New(configured(t, f.client, testenv.Prefix(t)+"none", of, codec.Readable))
		for name, read := range reads(none.With(Extra{Ties: true})) {
			_, err := read(t.Context())
			var bare *ranking.SchemaError
			require.ErrorAs(t, err, &bare, name)
			require.Empty(t, bare.Found, name)
		}
	}
}
