package boards

// Helpers of these tests: boards of several shards whose standings are written directly, and their model,
// one sorted list.

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rules"
)

// tester is a test, a benchmark or one run of a property.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

type fixture struct {
	*Boards
	client *redis.Client
	window periods.Window
	board  string
	layout codec.TupleLayout
	rule   string // as in a listing; empty for the default rule
}

func configured(t tester, client redis.UniversalClient, prefix string, of ledger.Shards, kind codec.Kind) ranking.Config {
	t.Helper()
	layout, err := codec.New(kind, periods.Weekly.Length(), 1_000_000)
	require.NoError(t, err)
	return ranking.Config{
		Client: client, Prefix: prefix, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
	}
}

// newFixture starts every shard at position 10, without members.
func newFixture(t tester, client *redis.Client, prefix string, of ledger.Shards, kind codec.Kind) *fixture {
	t.Helper()
	c := configured(t, client, prefix, of, kind)
	return fixed(t, client, &c)
}

// byRule returns a fixture whose board has two fields; fewer of the second is better.
func byRule(t tester, client *redis.Client, prefix string, of ledger.Shards, kind codec.Kind) *fixture {
	t.Helper()
	rule, err := rules.ParseRule("best(stage:999,revives:99:fewest)")
	require.NoError(t, err)
	layout, err := codec.NewTupleLayout(kind, periods.Weekly.Length(), rule.Fields)
	require.NoError(t, err)
	c := configured(t, client, prefix, of, kind)
	c.Boards = map[string]*ranking.Ruled{"arena": {Rule: &rule, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: layout}}}
	f := fixed(t, client, &c)
	f.board, f.layout, f.rule = "arena", layout, rule.Text()
	return f
}

func fixed(t tester, client *redis.Client, c *ranking.Config) *fixture {
	t.Helper()
	var calendar periods.Calendar
	w, err := calendar.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(t, err)
	f := &fixture{Boards: New(*c), client: client, window: w, board: "global", layout: c.Periods[periods.Weekly].Layout.OfPoints()}
	for _, s := range f.Shards() {
		begun, err := s.Begin(t.Context(), []ledger.StartPosition{{
			Partition: ledger.Partition{Topic: "points"}, At: ledger.At(10), Origin: &ledger.Origin{},
		}})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
	}
	return f
}

// key returns the board's key on a shard.
func (f *fixture) key(shard int) string {
	return f.Shards()[shard].Keys().Listed(f.board + ":weekly:" + f.window.Name)
}

// put writes standings, each to the shard of its member.
func (f *fixture) put(t tester, all ...ranking.Standing) {
	t.Helper()
	pipe := f.client.Pipeline()
	listing := ranking.Listing{Window: ledger.Window{Start: f.window.Start, End: f.window.End}, Rule: f.rule, Expires: f.window.End + 60*24*int64(time.Hour/time.Millisecond)}
	for _, st := range all {
		home := f.home(st.Member)
		pipe.ZAdd(t.Context(), f.key(home), redis.Z{Score: st.Score, Member: st.Member})
		pipe.HSet(t.Context(), f.Shards()[home].Keys().Windows(), f.board+":weekly:"+f.window.Name, listing.Text())
		if pipe.Len() >= 400 { // the client's deadline covers a whole pipeline, and Redis may be busy
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
		}
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
}

// standing returns a standing whose time is ticks after the window's start. With a rule, points from -2 on
// map to tuples that differ in both fields.
func (f *fixture) standing(member string, points, ticks int64) ranking.Standing {
	st, tuple := ranking.Standing{Member: member, Points: points}, codec.Tuple{points}
	if f.rule != "" {
		tuple = codec.Tuple{(points + 2) / 2, 1 - (points+2)%2}
		st.Points, st.Tuple = 0, tuple
	}
	left := f.layout.Ticks(f.window.Start, f.window.End, f.window.Start+ticks*f.layout.Tick)
	var err error
	if st.Score, err = f.layout.Encode(tuple, left); err != nil {
		panic(err)
	}
	st.ReachedAt = time.UnixMilli(f.layout.Time(f.window.Start, f.window.End, left)).UTC()
	return st
}

// better is the model's order of points: more points first; with a rule the higher stage, then fewer
// revives.
func better(a, b *ranking.Standing) int {
	return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(b.Tuple[0], a.Tuple[0]), cmp.Compare(a.Tuple[1], b.Tuple[1]))
}

// ranked is the model's order of standings: the better first, then the earlier, then the greater id.
func ranked(all []ranking.Standing) []ranking.Standing {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b ranking.Standing) int {
		return cmp.Or(better(&a, &b), a.ReachedAt.Compare(b.ReachedAt), cmp.Compare(b.Member, a.Member))
	})
	for i := range all {
		all[i].Rank = int64(i + 1)
	}
	return all
}

// cut returns a page of the model, or nil if it is empty.
func cut(all []ranking.Standing, offset, limit int) []ranking.Standing {
	from := min(offset, len(all))
	if to := min(from+limit, len(all)); to > from {
		return all[from:to]
	}
	return nil
}

// trips counts round trips; a pipeline counts as one.
type trips struct{ n atomic.Int64 }

func (t *trips) DialHook(next redis.DialHook) redis.DialHook { return next }
func (t *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmd)
	}
}
func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmds)
	}
}
