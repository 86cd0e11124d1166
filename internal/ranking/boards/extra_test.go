package boards

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

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
			"around, n":      func() (ranking.Board, error) { return f.Around(ctx, "global", f.window, "u1", -1) },
			"score, n":       func() (ranking.Board, error) { return f.AroundScore(ctx, "global", f.window, 1, -1) },
			"score":          func() (ranking.Board, error) { return f.AroundScore(ctx, "global", f.window, nan, 1) },
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

// Every read reports a window that does not exist or that a shard has lost.
func TestEveryReadReportsWhatIsLostAndWhatIsBeside(t *testing.T) {
	for _, of := range numbers[:3] {
		f, _ := some(t, of)
		reads := func(b *Boards) map[string]func(context.Context) (ranking.Board, error) {
			return map[string]func(context.Context) (ranking.Board, error){
				"bottom": func(ctx context.Context) (ranking.Board, error) { return b.Bottom(ctx, "global", f.window, 0, 10) },
				"after": func(ctx context.Context) (ranking.Board, error) {
					return b.After(ctx, "global", f.window, ranking.TopPivot(), 10)
				},
				"score": func(ctx context.Context) (ranking.Board, error) { return b.AroundScore(ctx, "global", f.window, 7, 10) },
				"counts": func(ctx context.Context) (ranking.Board, error) {
					return b.With(Extra{Counts: []float64{7}}).Top(ctx, "global", f.window, 0, 0)
				},
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

// The round trips of reads after the server has loaded the scripts. With one shard a read is one call,
// including all additional results. With several shards ties take one more call, except at an end of the
// board.
func TestReadsAroundAPlaceAreOneRoundTripAndTiesOneMore(t *testing.T) {
	for _, of := range []ledger.Shards{1, 16} {
		f, trips := some(t, of)
		ctx, counts := t.Context(), Extra{Counts: []float64{7, 9}}
		tied := Extra{Ties: true, Counts: counts.Counts}
		middle := ranking.Pivot{Score: 100.5}
		for name, c := range map[string]struct {
			one, several int64
			read         func(b *Boards) (ranking.Board, error)
			extra        Extra
		}{
			"top":    {1, 1, func(b *Boards) (ranking.Board, error) { return b.Top(ctx, "global", f.window, 0, 100) }, Extra{}},
			"ranks":  {1, 2, func(b *Boards) (ranking.Board, error) { return b.Rank(ctx, "global", f.window, "u1", "u2", "no") }, Extra{}},
			"bottom": {1, 1, func(b *Boards) (ranking.Board, error) { return b.Bottom(ctx, "global", f.window, 0, 10) }, counts},
			"after":  {1, 1, func(b *Boards) (ranking.Board, error) { return b.After(ctx, "global", f.window, middle, 10) }, counts},
			"score":  {1, 1, func(b *Boards) (ranking.Board, error) { return b.AroundScore(ctx, "global", f.window, 100, 10) }, counts},
			"range": {1, 1, func(b *Boards) (ranking.Board, error) {
				return b.Range(ctx, "global", f.window, Range{Low: 5, High: 100}, 10)
			}, counts},
			"counts":       {1, 1, func(b *Boards) (ranking.Board, error) { return b.Top(ctx, "global", f.window, 0, 0) }, counts},
			"whole, tied":  {1, 1, func(b *Boards) (ranking.Board, error) { return b.Top(ctx, "global", f.window, 0, 200) }, tied},
			"top, tied":    {1, 2, func(b *Boards) (ranking.Board, error) { return b.Top(ctx, "global", f.window, 0, 10) }, tied},
			"after, tied":  {1, 2, func(b *Boards) (ranking.Board, error) { return b.After(ctx, "global", f.window, middle, 10) }, tied},
			"rank, tied":   {1, 2, func(b *Boards) (ranking.Board, error) { return b.Rank(ctx, "global", f.window, "u1", "u2", "no") }, tied},
			"around":       {1, 2, func(b *Boards) (ranking.Board, error) { return b.Around(ctx, "global", f.window, "u9", 3) }, counts},
			"around, tied": {1, 3, func(b *Boards) (ranking.Board, error) { return b.Around(ctx, "global", f.window, "u9", 3) }, tied},
		} {
			for range 2 {
				trips.n.Store(0)
				_, err := c.read(f.With(c.extra))
				require.NoError(t, err, name)
			}
			want := c.one
			if of > 1 {
				want = c.several
			}
			require.Equal(t, want, trips.n.Load(), "%s, %d shards", name, of)
		}
	}
}

// The largest number of members in one request, half of them without a standing, with ties.
func TestAThousandMembersAreLookedUpAtOnce(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, of := range numbers {
		f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), of, codec.Wide)
		var all list
		var asked []string
		for i := range MostMembers {
			if asked = append(asked, fmt.Sprint("u", i)); i%2 == 0 {
				all = append(all, f.standing(asked[i], int64(i/8), int64(i%3)))
			}
		}
		f.put(t, all...)
		byID := map[string]ranking.Standing{}
		for _, st := range list(ranked(all)).tied() {
			byID[st.Member] = st
		}
		b, err := f.With(Extra{Ties: true}).Rank(t.Context(), "global", f.window, asked...)
		require.NoError(t, err)
		require.Len(t, b.Standings, MostMembers)
		for i, st := range b.Standings {
			want := byID[asked[i]]
			want.Member = asked[i]
			require.Equal(t, want, st)
		}
	}
}

// Pages too far from an end of the board for reading all rows between.
func TestFarPagesFromTheBottomAndInARangeAreExact(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t), 5, codec.Readable)
	var all list
	for i := range 5500 {
		all = append(all, f.standing(fmt.Sprint("u", i), int64(i*7919%500), int64(i%7)))
	}
	f.put(t, all...)
	all = list(ranked(all)).tied()
	b := f.With(Extra{Ties: true, Counts: []float64{250}})
	for _, offset := range []int{2001, 3000, 5480, 5499, 5500, 9000} {
		got, err := b.Bottom(t.Context(), "global", f.window, offset, 30)
		require.NoError(t, err)
		require.Equal(t, all.rows(len(all)-offset-30, len(all)-offset), got.Standings)
		require.Equal(t, []int64{2750}, got.Counts)
		in := Range{Low: 50, High: 450, Offset: offset}
		first, end := all.least(450)+offset, all.least(50)
		got, err = b.Range(t.Context(), "global", f.window, in, 30)
		require.NoError(t, err)
		require.Equal(t, all.rows(first, min(end, first+30)), got.Standings, "%d", offset)
		require.Equal(t, int64(4400), got.InRange)
		require.Equal(t, []int64{2750}, got.Counts)
	}
	got, err := b.Range(t.Context(), "global", f.window, Range{Low: 50, High: 450, Offset: 4385}, 30)
	require.NoError(t, err)
	require.Len(t, got.Standings, 15, "the range ends within the page")
}

// A hidden member is not shown and not counted, and sees the ties that it would be part of.
func TestHiddenMembersAreInNoRead(t *testing.T) {
	for _, of := range numbers[:4] {
		f, _ := some(t, of)
		hidden := f.standing("x", 100, 5)
		_, beside := f.Shards()[f.home("x")].Keys().Both(f.board + ":weekly:" + f.window.Name)
		require.NoError(t, f.client.ZAdd(t.Context(), beside, redis.Z{Score: hidden.Score, Member: "x"}).Err())
		b := f.With(Extra{Ties: true, Counts: []float64{100}})
		got, err := b.AroundScore(t.Context(), "global", f.window, 100, 300)
		require.NoError(t, err)
		require.Len(t, got.Standings, 200)
		require.Equal(t, []int64{100}, got.Counts)
		got, err = b.Rank(t.Context(), "global", f.window, "x", "u100")
		require.NoError(t, err)
		require.Equal(t, ranking.Standing{Member: "x"}, got.Standings[0])
		require.Equal(t, int64(100), got.Standings[1].AtLeast)
		got, err = b.RankOfHidden(t.Context(), "global", f.window, "x")
		require.NoError(t, err)
		hidden.Rank, hidden.More, hidden.AtLeast = 101, 99, 101
		require.Equal(t, []ranking.Standing{hidden}, got.Standings)
	}
}
