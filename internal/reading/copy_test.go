package reading

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// Every read of a window returns the same from Redis and from its copy in the archive, even if members are banned,
// unbanned and erased before or after the copy was taken.
func TestACopyAnswersAsRedisDid(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, of := range []ledger.Shards{1, 3} {
		for _, kind := range []codec.Kind{codec.Readable, codec.Wide} {
			t.Run(fmt.Sprintf("%d %s sqlite", of, kind), func(t *testing.T) { sameFromBoth(t, of, kind, sqliteURL(t)) })
			t.Run(fmt.Sprintf("%d %s postgres", of, kind), func(t *testing.T) { sameFromBoth(t, of, kind, testenv.Postgres(t)) })
		}
	}
}

func sameFromBoth(t *testing.T, of ledger.Shards, kind codec.Kind, url string) {
	t.Helper()
	prefix := testenv.Prefix(t)
	f := newFixture(t, prefix, of, kind)
	empty := newFixture(t, prefix+"-empty", of, kind)
	s := openStore(t, url)
	live := New(f.config)
	empty.config.Archive = archiveOf(s)
	past := New(empty.config)
	var names []string
	copies := map[string]store.Window{}
	for i := range arenas {
		for _, name := range []string{"global", "arena"} {
			name += fmt.Sprint(i)
			members := membersOf(name).Example(i + 7)
			for seed := 100 * i; i > 0 && len(members) < 5*i; seed++ { // from one member to many
				members = membersOf(name).Example(seed)
			}
			f.put(t, name, members)
			for _, m := range members[:len(members)/4] {
				f.each(t, (*ranking.Store).Ban, ranking.Ban{Board: name, Member: m.id})
				empty.each(t, (*ranking.Store).Ban, ranking.Ban{Board: name, Member: m.id})
			}
			copies[name], names = f.copyTo(t, s, name, int64(i+1)), append(names, name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		board := rapid.SampledFrom(names).Draw(rt, "board")
		was := copies[board]
		f.drawBan(rt, empty, s, board)
		for range 4 {
			ask := drawRead(rt, f, board)
			fromRedis, wrong := ask.do(live, f.target(board))
			fromCopy, err := ask.do(past, f.target(board))
			if wrong != nil {
				require.ErrorIs(rt, wrong, ErrRange, ask.what)
				require.ErrorIs(rt, err, ErrRange, ask.what)
				continue
			}
			require.NoError(rt, err, ask.what)
			require.False(rt, fromRedis.Archived)
			require.True(rt, fromCopy.Archived)
			require.Equal(rt, was.Revision, fromCopy.Revision)
			require.True(rt, fromCopy.AsOf.Equal(was.AsOf))
			require.Equal(rt, StateArchived, fromCopy.State())
			require.Equal(rt, fromRedis.Beside.Ledger, fromCopy.Beside.Ledger)
			require.WithinDuration(rt, time.Now(), fromCopy.Beside.Now, time.Minute)
			if ask.after != nil {
				for i := range fromRedis.Standings {
					// With Redis this holds for any score with these points, with a copy only for the pivot's own
					// row.
					if st := &fromRedis.Standings[i]; fromCopy.SamePoints(ask.after.Score, st) {
						require.True(rt, fromRedis.SamePoints(ask.after.Score, st), ask.what)
					}
				}
			}
			if ask.row {
				for i := range fromRedis.Standings {
					st := &fromRedis.Standings[i]
					require.Equal(rt, fromRedis.SamePoints(ask.after.Score, st), fromCopy.SamePoints(ask.after.Score, st), "%s: %+v", ask.what, st)
				}
			}
			require.Equal(rt, seen(fromRedis, ask), seen(fromCopy, ask), ask.what)
		}
	})
}

// seen returns the parts of a view to compare: without its source and the consumers' progress.
func seen(v View, r reads) View {
	v.Archived, v.AsOf, v.Revision, v.Shards, v.Beside, v.Progress, v.before = false, time.Time{}, 0, nil, ledger.State{}, workers.Progress{}, nil
	if !r.placed {
		v.Place = 0
	}
	if len(v.Standings) == 0 {
		v.Standings = nil
	}
	if len(v.Incomplete) == 0 {
		v.Incomplete = nil
	}
	return v
}

// membersOf generates members with few different values, ticks and ids, so that many are equal.
func membersOf(board string) *rapid.Generator[[]member] {
	one := rapid.Custom(func(t *rapid.T) member {
		id := rapid.SampledFrom([]string{"a", "b", "\x00", "\u2400", "é", "z"}).Draw(t, "begins") + fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "number"))
		m := member{id: id, ticks: rapid.Int64Range(0, 2).Draw(t, "ticks")}
		m.values[0] = rapid.Int64Range(-2, 3).Draw(t, "value")
		if isArena(board) {
			m.values[0], m.values[1] = m.values[0]+2, rapid.Int64Range(0, 2).Draw(t, "second")
		}
		return m
	})
	return rapid.SliceOfNDistinct(one, 1, 40, func(m member) string { return m.id })
}

// reads is one operation.
type reads struct {
	what   string
	do     func(*Reader, Target) (View, error)
	placed bool // Place is defined
	after  *ranking.Pivot
	row    bool // after is a row of the board
}

// drawBan bans or unbans some members, or rarely erases one. These may have a row of the board. It applies the
// change to Redis, to the Redis that lists no window, and to the archive.
func (f *fixture) drawBan(t *rapid.T, empty *fixture, s *store.Store, board string) {
	b, err := f.boards.Top(context.Background(), board, f.window, 0, 1000)
	require.NoError(t, err)
	all := append(b.Standings, f.hidden(t, board)...)
	if len(all) == 0 {
		return
	}
	for range rapid.IntRange(0, 5).Draw(t, "bans") {
		ban := ranking.Ban{Board: rapid.SampledFrom([]string{"", board, "another"}).Draw(t, "banned on"), Member: rapid.SampledFrom(all).Draw(t, "who").Member}
		do := (*ranking.Store).Ban
		switch rapid.IntRange(0, 40).Draw(t, "does") {
		case 0:
			ban.Board, ban.Erased = "", true
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
			do = (*ranking.Store).Unban
		}
		for _, f := range []*fixture{f, empty} {
			if err := ranking.BanEach(context.Background(), f.boards.Shards(), ban, do); !errors.Is(err, ranking.ErrErased) {
				require.NoError(t, err)
			}
		}
		if ban.Erased && rapid.Bool().Draw(t, "the archive has heard of it") {
			_, err := s.Erase(context.Background(), leader, ban.Member)
			require.NoError(t, err)
		}
	}
}

func drawRead(t *rapid.T, f *fixture, board string) reads {
	all, err := f.boards.Top(context.Background(), board, f.window, 0, 1000)
	require.NoError(t, err)
	all.Standings = append(all.Standings, f.hidden(t, board)...)
	if len(all.Standings) == 0 { // all members are erased
		all.Standings = []ranking.Standing{{Member: "nobody"}}
	}
	n := rapid.IntRange(0, 12)
	ties := rapid.Bool().Draw(t, "ties")
	who := rapid.OneOf(rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(all.Standings).Draw(t, "row").Member }),
		rapid.SampledFrom([]string{"nobody", "\xff\xfe", "a\x00", "z9"})) // ids that are missing or invalid
	points := rapid.OneOf(rapid.Int64Range(-3, 5), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, maxPoints, maxPoints + 1, -maxPoints}))
	page := Page{Limit: n.Draw(t, "limit"), Offset: rapid.IntRange(0, 45).Draw(t, "offset"), Ties: ties}
	rows := func(what string, p Page) reads {
		return reads{what: fmt.Sprintf("%s %+v", what, p), placed: p.Limit > 0 || p.After != nil || p.Points != nil, after: p.After, do: func(r *Reader, at Target) (View, error) { return r.Rows(context.Background(), at, p) }}
	}
	kinds := []string{"top", "bottom", "after", "beside a pivot", "around", "neighbours", "beside", "members", "shadow", "would", "window"}
	if !isArena(board) {
		kinds = append(kinds, "range", "range after")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "top":
		return rows(kind, page)
	case "bottom":
		page.Bottom = true
		return rows(kind, page)
	case "after":
		st := rapid.SampledFrom(all.Standings).Draw(t, "after")
		page.Offset, page.After = 0, &ranking.Pivot{Score: st.Score, Member: st.Member}
		r := rows(fmt.Sprintf("%s %+v", kind, *page.After), page)
		r.row = true
		return r
	case "beside a pivot":
		st := rapid.SampledFrom(all.Standings).Draw(t, "after")
		score := rapid.SampledFrom([]float64{st.Score, math.Nextafter(st.Score, 1e18), math.Nextafter(st.Score, -1e18), -math.MaxFloat64, math.Inf(1)}).Draw(t, "score")
		page.Offset, page.After = 0, &ranking.Pivot{Score: score, Member: rapid.SampledFrom([]string{"", "a", "m", "\xff", st.Member + "\x00"}).Draw(t, "id")}
		return rows(fmt.Sprintf("%s %+v", kind, *page.After), page)
	case "range", "range after":
		ends := []int64{points.Draw(t, "end"), points.Draw(t, "end")}
		slices.Sort(ends)
		page.Points = &[2]int64{ends[0], ends[1]}
		if kind == "range after" {
			st := rapid.SampledFrom(all.Standings).Draw(t, "after")
			page.Offset, page.After = 0, &ranking.Pivot{Score: st.Score, Member: st.Member}
		}
		return rows(fmt.Sprintf("%s %v", kind, ends), page)
	case "members":
		ids := rapid.SliceOfN(who, 1, 8).Draw(t, "members")
		return reads{what: fmt.Sprintf("%s %q", kind, ids), do: func(r *Reader, at Target) (View, error) { return r.Members(context.Background(), at, ties, ids...) }}
	case "would":
		values := []int64{points.Draw(t, "points")}
		if isArena(board) {
			values = []int64{rapid.Int64Range(-1, 11).Draw(t, "stage"), rapid.Int64Range(-1, 11).Draw(t, "revives")}
		}
		beside := n.Draw(t, "n")
		return reads{what: fmt.Sprintf("%s %v, %d", kind, values, beside), placed: true, do: func(r *Reader, at Target) (View, error) { return r.Would(context.Background(), at, values, beside) }}
	case "window":
		return reads{what: kind, do: func(r *Reader, at Target) (View, error) { return r.Window(context.Background(), at) }}
	default:
		id, beside := who.Draw(t, "member"), n.Draw(t, "n")
		return reads{what: fmt.Sprintf("%s %q, %d, ties %t", kind, id, beside, ties), do: func(r *Reader, at Target) (View, error) {
			switch kind {
			case "around":
				return r.Around(context.Background(), at, id, beside, ties)
			case "neighbours":
				return r.Neighbours(context.Background(), at, id, beside)
			case "beside":
				return r.Beside(context.Background(), at, id, ties)
			}
			return r.Shadow(context.Background(), at, id)
		}}
	}
}
