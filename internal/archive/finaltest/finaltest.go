// Package finaltest provides a board whose window can become final, for tests of code that processes final
// windows.
package finaltest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/testenv"
)

const (
	// ByRule is a rule of two fields.
	ByRule = "best(stage:999,revives:99:fewest)"

	lateness  = 24 * time.Hour
	retention = 60 * 24 * time.Hour
)

// Points is the partition that the tests count, up to offset 10.
var Points = ledger.Partition{Topic: "points"}

// World is a board with a window of the week before last, which no longer accepts events. The board is global with
// the default rule, or arena with its own.
type World struct {
	*boards.Boards

	Redis  *redis.Client
	Window periods.Window
	Board  string
	Rule   *rules.Rule // nil: the default rule
	Layout codec.TupleLayout

	t       testing.TB
	members int
}

// New returns a board with an empty window. An empty rule means the default rule.
func New(t testing.TB, of ledger.Shards, rule string) *World {
	t.Helper()
	w := &World{t: t, Redis: testenv.RedisClient(t), Board: "global"}
	var calendar periods.Calendar
	var err error
	w.Window, err = calendar.At(periods.Weekly, time.Now().AddDate(0, 0, -10).UnixMilli())
	require.NoError(t, err)
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 1_000_000)
	require.NoError(t, err)
	c := ranking.Config{
		Client: w.Redis, Prefix: testenv.Prefix(t), Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: retention}},
	}
	w.Layout = layout.OfPoints()
	if rule != "" {
		r, err := rules.ParseRule(rule)
		require.NoError(t, err)
		w.Layout, err = codec.NewTupleLayout(codec.Readable, periods.Weekly.Length(), r.Fields)
		require.NoError(t, err)
		w.Board, w.Rule = "arena", &r
		c.Boards = map[string]*ranking.Ruled{"arena": {Rule: &r, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: w.Layout}}}
	}
	w.Boards = boards.New(c)
	for _, s := range w.Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: Points, At: ledger.At(10), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	return w
}

// Listed returns the window's name in the listing.
func (w *World) Listed() string { return w.Board + ":weekly:" + w.Window.Name }

// Shard returns the shard of a member.
func (w *World) Shard(member string) *ranking.Store { return w.Shards()[w.home(member)] }

func (w *World) home(member string) int { return w.Of().Of(xxhash.Sum64String(member)) }

// Fill adds members m0, m1, … to the window, some with unusual names. Many have the same points, and some also the
// same tick.
func (w *World) Fill(members int) {
	w.t.Helper()
	listed := ranking.Listing{Window: ledger.Window{Start: w.Window.Start, End: w.Window.End}, Expires: w.Window.End + retention.Milliseconds()}
	if w.Rule != nil {
		listed.Rule = w.Rule.Text()
	}
	listing := listed.Text()
	all := make([][]redis.Z, len(w.Shards()))
	for range members {
		member := fmt.Sprint("m", w.members)
		if w.members++; w.members%50 == 0 {
			member = fmt.Sprintf("<%d> \"ü\u2400\x00\\", w.members)
		}
		tuple := codec.Tuple{rand.Int64N(50)}
		if w.Rule != nil {
			tuple[1] = rand.Int64N(5)
		}
		score, err := w.Layout.Encode(tuple, rand.Int64N(20))
		require.NoError(w.t, err)
		s := w.home(member)
		all[s] = append(all[s], redis.Z{Score: score, Member: member})
	}
	// Few commands, since each waits for those of other tests if they share one server.
	for i, s := range w.Shards() {
		if len(all[i]) == 0 {
			continue
		}
		require.NoError(w.t, w.Redis.ZAdd(w.t.Context(), s.Keys().Listed(w.Listed()), all[i]...).Err())
		require.NoError(w.t, w.Redis.HSetNX(w.t.Context(), s.Keys().Windows(), w.Listed(), listing).Err())
	}
}

// Shown returns the rows that Redis shows, read in one page.
func (w *World) Shown() []store.Row {
	w.t.Helper()
	b, err := w.Top(w.t.Context(), w.Board, w.Window, 0, 100_000)
	require.NoError(w.t, err)
	require.Empty(w.t, b.Lost)
	var all []store.Row
	for i := range b.Standings {
		st := &b.Standings[i]
		all = append(all, w.row(st, st.Rank))
	}
	return all
}

// Rows returns the rows that a copy must have, including those of hidden members.
func (w *World) Rows() []store.Row {
	w.t.Helper()
	all := w.Shown()
	for _, s := range w.Shards() {
		hidden, next, err := s.ScanMembers(w.t.Context(), w.Board, w.Window, true, 0)
		require.NoError(w.t, err)
		require.Zero(w.t, next, "few are hidden in tests")
		for i := range hidden {
			all = append(all, w.row(&hidden[i], 0))
		}
	}
	slices.SortFunc(all, func(a, b store.Row) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
	for i := range all {
		all[i].Place = int64(i + 1)
	}
	return all
}

func (w *World) row(st *ranking.Standing, rank int64) store.Row {
	r := store.Row{Place: rank, Rank: rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
	if w.Rule == nil {
		r.Tuple = codec.Tuple{st.Points}
	}
	return r
}

// Always closes every window a day after its end.
func Always(ledger.Window) (time.Duration, bool) { return lateness, true }

// Zone is the time zone of every board.
func Zone(string) string { return "Europe/Berlin" }

// Fields returns the fields of a board with its own rule.
func (w *World) Fields(board string) []codec.Field {
	if board == "arena" && w.Rule != nil {
		return w.Rule.Fields.List()
	}
	return nil
}
