package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

var points = ledger.Partition{Topic: "points"}

const lateness = 24 * time.Hour

// fixture is a board whose window of the week before last takes nothing any more, and an archive.
type fixture struct {
	*boards.Boards
	t       *testing.T
	client  *redis.Client
	window  periods.Window
	board   string
	layout  codec.TupleLayout
	rule    *rules.Rule
	archive *store.Store
	path    string
}

func newFixture(t *testing.T, of ledger.Shards, rule string) *fixture {
	t.Helper()
	f := &fixture{t: t, client: testenv.RedisClient(t), board: "global", path: filepath.Join(t.TempDir(), "archive.db")}
	var calendar periods.Calendar
	var err error
	f.window, err = calendar.At(periods.Weekly, time.Now().AddDate(0, 0, -10).UnixMilli())
	require.NoError(t, err)
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 1_000_000)
	require.NoError(t, err)
	c := ranking.Config{
		Client: f.client, Prefix: testenv.Prefix(t), Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
	}
	f.layout = layout.OfPoints()
	if rule != "" {
		r, err := rules.ParseRule(rule)
		require.NoError(t, err)
		f.layout, err = codec.NewTupleLayout(codec.Readable, periods.Weekly.Length(), r.Fields)
		require.NoError(t, err)
		f.board, f.rule = "arena", &r
		c.Boards = map[string]*ranking.Ruled{"arena": {Rule: &r, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: f.layout}}}
	}
	f.Boards = boards.New(c)
	for _, s := range f.Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: points, At: ledger.At(10), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	f.archive = f.open()
	require.NoError(t, f.archive.Migrate(t.Context()))
	return f
}

func (f *fixture) open() *store.Store {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), "sqlite:"+f.path)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, s.Close()) })
	return s
}

// name is the window's in the listing.
func (f *fixture) name() string { return f.board + ":weekly:" + f.window.Name }

func (f *fixture) of(member string) *ranking.Store {
	return f.Shards()[f.Of().Of(xxhash.Sum64String(member))]
}

// fill puts members m0… into the window, many with the same points, some in the same tick too.
func (f *fixture) fill(members int) {
	f.t.Helper()
	pipe := f.client.Pipeline()
	rule := ""
	if f.rule != nil {
		rule = f.rule.Text() + " "
	}
	listing := fmt.Sprintf("%d %d %s%d", f.window.Start, f.window.End, rule, f.window.End+60*24*time.Hour.Milliseconds())
	for i := range members {
		member := fmt.Sprint("m", i)
		tuple := codec.Tuple{rand.Int64N(50)}
		if f.rule != nil {
			tuple[1] = rand.Int64N(5)
		}
		score, err := f.layout.Encode(tuple, rand.Int64N(20))
		require.NoError(f.t, err)
		s := f.of(member)
		pipe.ZAdd(f.t.Context(), s.Keys().Listed(f.name()), redis.Z{Score: score, Member: member})
		pipe.HSet(f.t.Context(), s.Keys().Windows(), f.name(), listing)
	}
	_, err := pipe.Exec(f.t.Context())
	require.NoError(f.t, err)
}

func always(ledger.Window) (time.Duration, bool) { return lateness, true }

// seal makes the window final.
func (f *fixture) seal() {
	f.t.Helper()
	due, err := f.Due(f.t.Context(), time.Now(), time.Now(), always, 0)
	require.NoError(f.t, err)
	sealed, err := f.Seal(f.t.Context(), map[ledger.Partition]int64{points: 10}, due)
	require.NoError(f.t, err)
	require.Equal(f.t, []string{f.name()}, sealed.Final)
}

// archiver is one whose pages are small.
func (f *fixture) archiver(progress func(Progress)) *Archiver {
	a := New(Config{
		Boards: f.Boards, Store: f.archive, Lateness: always, Zone: func(string) string { return "Europe/Berlin" },
		Fields: func(board string) []codec.Field {
			if board == "arena" && f.rule != nil {
				return f.rule.Fields.List()
			}
			return nil
		},
		Progress: progress, Log: zaptest.NewLogger(f.t),
	})
	a.pages, a.append = 10, 30
	return a
}

// shown are the rows as Redis shows them, in one page.
func (f *fixture) shown() []store.Row {
	f.t.Helper()
	b, err := f.Top(f.t.Context(), f.board, f.window, 0, 100_000)
	require.NoError(f.t, err)
	require.Empty(f.t, b.Lost)
	var all []store.Row
	for i := range b.Standings {
		st := &b.Standings[i]
		r := store.Row{Rank: st.Rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
		if f.rule == nil {
			r.Tuple = codec.Tuple{st.Points}
		}
		all = append(all, r)
	}
	return all
}

// archived are a revision's rows in the archive.
func (f *fixture) archived(revision int64) (store.Window, []store.Row) {
	f.t.Helper()
	windows, err := f.archive.Windows(f.t.Context(), store.Filter{Board: f.board, Period: "weekly", Name: f.window.Name, All: true}, store.Place{}, 10)
	require.NoError(f.t, err)
	for _, w := range windows {
		if w.Revision == revision && w.State == store.Whole {
			var all []store.Row
			require.NoError(f.t, f.archive.Each(f.t.Context(), w.ID, func(r *store.Row) error {
				all = append(all, *r)
				return nil
			}))
			require.NoError(f.t, f.archive.Verify(f.t.Context(), w.ID))
			return w, all
		}
	}
	return store.Window{}, nil
}

func fence(token int64) store.Fence {
	return store.Fence{Token: token, Owner: strconv.FormatInt(token, 10)}
}

// expires is when a shard lets go of the window.
func (f *fixture) expires() time.Time {
	f.t.Helper()
	all, err := f.Closed(context.WithoutCancel(f.t.Context()), always, 0)
	require.NoError(f.t, err)
	require.Len(f.t, all, 1)
	return time.UnixMilli(all[0].Expires)
}
