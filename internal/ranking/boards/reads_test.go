package boards

// All reads around a place behave as reads of one sorted list: the model of reads with ties, counts, pivots
// and ranges.

import (
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

// tied fills in how many members have more than each standing, and how many at least as many.
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

// rows returns the standings from one index to another, as far as they exist.
func (l list) rows(from, to int) []ranking.Standing {
	from, to = max(0, from), min(to, len(l))
	if from >= to {
		return nil
	}
	return l[from:to]
}

// full returns the rows above and below a place; near an end of the list it returns as many in all.
func (l list) full(place, above, below int) []ranking.Standing {
	n := above + below
	from := max(0, min(place-above, len(l)-n))
	return l.rows(from, from+n)
}

// least returns the number of members with at least a score.
func (l list) least(score float64) (n int) {
	for _, st := range l {
		if st.Score >= score {
			n++
		}
	}
	return n
}

// upTo returns the number of standings that are not below a pivot.
func (l list) upTo(p ranking.Pivot) (n int) {
	for _, st := range l {
		if st.Score > p.Score || st.Score == p.Score && st.Member >= p.Member {
			n++
		}
	}
	return n
}

// drawn returns a board with few different scores, and its model.
func drawn(t *rapid.T, short *rapid.Generator[string], newOne func(*rapid.T) *fixture) (*fixture, list) {
	f := newOne(t)
	names, n := rapid.OneOf(rapid.StringN(1, 8, 64), short), rapid.IntRange(0, 60).Draw(t, "members")
	if rapid.Bool().Draw(t, "on one shard") {
		names = names.Filter(func(id string) bool { return f.home(id) == 0 })
	}
	// The members of shard 0 may have the most points, or the fewest.
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
		// Scores of members, the bounds of their points, scores that no member has, and infinities.
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
			require.Equal(t, len(all) > 0, got.Listed, what)
			require.Empty(t, got.Lost, what)
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
		if f.of > 1 && limit > 0 {
			q := b.query(f.board, f.window, ranking.Rows{})
			got, err = b.farDown(ctx, &q, offset, limit)
			got.Place = 0
			check("top by a search", got, err, all.rows(offset, offset+limit), 0)
		}
		got, err = b.Bottom(ctx, f.board, f.window, offset, limit)
		got.Place = 0
		check("bottom", got, err, all.rows(len(all)-offset-limit, len(all)-offset), 0)

		pivot := ranking.Pivot{Score: scores.Draw(t, "pivot"), Member: rapid.OneOf(rapid.Just(""), short).Draw(t, "pivot's id")}
		if len(all) > 0 && rapid.Bool().Draw(t, "a member's") {
			row := rapid.SampledFrom(all).Draw(t, "pivot's row")
			pivot = row.Pivot()
		}
		upTo := all.upTo(pivot)
		got, err = b.After(ctx, f.board, f.window, pivot, limit)
		check("after", got, err, all.rows(upTo, upTo+limit), upTo)

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

// Reads are exact however members are distributed, even if one shard has all the rows nearest to a place.
func TestRowsAroundAPlaceAreExactWhereOneShardHasAllOfThem(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 16, codec.Readable)
	var all list
	for i := 0; len(all) < 1500; i++ {
		// Shard 3 has the 500 members in the middle, and the other shards have some members each.
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
		top, err := f.Top(t.Context(), "global", f.window, 0, limit+700)
		require.NoError(t, err)
		require.Equal(t, all.rows(0, limit+700), top.Standings)
		for _, score := range []float64{900, 1000, 1300, 1700, 1800} {
			place := all.least(score)
			b, err := f.AroundScore(t.Context(), "global", f.window, score, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place-limit, place+limit), b.Standings)
			pivot := ranking.Pivot{Score: score}
			b, err = f.After(t.Context(), "global", f.window, pivot, limit)
			require.NoError(t, err)
			require.Equal(t, all.rows(place, place+limit), b.Standings)
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

// looked checks lookups of members, and the rows around one of them.
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
