package reading

// What these tests share: boards with standings written directly to Redis, and an archive to which they are copied
// row by row.

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

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

const maxPoints = 1000

// arenas is the number of boards with their own rule: arena0, arena1, …
const arenas = 6

func isArena(board string) bool { return strings.HasPrefix(board, "arena") }

// fixture is boards on a given number of shards. All have the default rule, except arenas, which rank by the
// furthest stage, then by the fewest revives.
type fixture struct {
	client *redis.Client
	boards *boards.Boards
	rule   rules.Rule
	window periods.Window
	period Period
	config Config
}

func newFixture(t testing.TB, prefix string, of ledger.Shards, kind codec.Kind) *fixture {
	t.Helper()
	f := &fixture{client: testenv.RedisClient(t)}
	var calendar periods.Calendar
	var err error
	f.window, err = calendar.At(periods.Weekly, time.Now().Add(-14*24*time.Hour).UnixMilli())
	require.NoError(t, err)
	f.period = Period{Rule: periods.BuiltIn(periods.Weekly, calendar), Zone: "UTC"}
	layout, err := codec.New(kind, periods.Weekly.Length(), maxPoints)
	require.NoError(t, err)
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 9}, codec.Field{Name: "revives", Max: 9, Fewest: true})
	require.NoError(t, err)
	f.rule, err = rules.New(rules.Best, fields)
	require.NoError(t, err)
	ruled, err := codec.NewTupleLayout(kind, periods.Weekly.Length(), fields)
	require.NoError(t, err)
	own := map[string]*ranking.Ruled{}
	for i := range arenas {
		own["arena"+strconv.Itoa(i)] = &ranking.Ruled{Rule: &f.rule, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: ruled}}
	}
	f.boards = boards.New(ranking.Config{
		Client: f.client, Prefix: prefix, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
		Boards:  own,
	})
	for _, s := range f.boards.Shards() {
		_, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(10), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
	}
	byDefault, err := rules.Default(maxPoints)
	require.NoError(t, err)
	f.config = Config{
		Boards: f.boards, Topics: []string{"points"}, Periods: []Period{f.period},
		Renumber: func(context.Context, ledger.Shards) (*boards.Boards, error) {
			return nil, errors.New("nobody has resharded")
		},
		CheckBoard: func(string) error { return nil },
		Has:        func(string, periods.Period) bool { return true },
		Rule: func(board string) rules.Rule {
			if isArena(board) {
				return f.rule
			}
			return byDefault
		},
	}
	return f
}

func (f *fixture) target(board string) Target {
	return Target{Board: board, Period: f.period, Window: f.window, Named: f.window.Name}
}

// entry returns an entry of the listing for a board with the default rule.
func entry(start, end, expires int64) string {
	l := ranking.Listing{Window: ledger.Window{Start: start, End: end}, Expires: expires}
	return l.Text()
}

// member is a member with a tuple that it reached the given number of ticks after the window's start.
type member struct {
	id     string
	ticks  int64
	values codec.Tuple
}

// put replaces a board's members in Redis.
func (f *fixture) put(t require.TestingT, board string, all []member) {
	ctx := context.Background()
	layout, ok := f.boards.Layout(board, periods.Weekly)
	require.True(t, ok)
	rule := ""
	if isArena(board) {
		rule = f.rule.Text()
	}
	w, name := f.window, f.listing(board)
	listing := ranking.Listing{Window: ledger.Window{Start: w.Start, End: w.End}, Rule: rule, Expires: time.Now().Add(24 * time.Hour).UnixMilli()}
	f.remove(t, board)
	pipe := f.client.Pipeline()
	for _, m := range all {
		score, err := layout.Encode(m.values, layout.Ticks(w.Start, w.End, w.Start+m.ticks*layout.Tick))
		require.NoError(t, err)
		keys := f.boards.Shards()[f.boards.Of().Of(xxhash.Sum64String(m.id))].Keys()
		pipe.ZAdd(ctx, keys.Listed(name), redis.Z{Score: score, Member: m.id})
		pipe.HSet(ctx, keys.Windows(), name, listing.Text())
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
}

// remove deletes a board from Redis.
func (f *fixture) remove(t require.TestingT, board string) {
	for _, s := range f.boards.Shards() {
		keys := s.Keys()
		require.NoError(t, f.client.Del(context.Background(), keys.Listed(f.listing(board)), keys.Hidden(f.listing(board))).Err())
		require.NoError(t, f.client.HDel(context.Background(), keys.Windows(), f.listing(board)).Err())
	}
}

func (f *fixture) listing(board string) string { return board + ":weekly:" + f.window.Name }

// leader writes to the archives of these tests.
var leader = store.Fence{Token: 1, Owner: "tests"}

// each calls do on every shard, to ban or unban a member everywhere.
func (f *fixture) each(t require.TestingT, do func(*ranking.Store, context.Context, ranking.Ban) error, b ranking.Ban) {
	require.NoError(t, ranking.BanEach(context.Background(), f.boards.Shards(), b, do))
}

// hidden returns the rows of banned members.
func (f *fixture) hidden(t require.TestingT, board string) (all []ranking.Standing) {
	for _, s := range f.boards.Shards() {
		some, _, err := s.ScanMembers(context.Background(), board, f.window, true, 0)
		require.NoError(t, err)
		all = append(all, some...)
	}
	return all
}

// copyTo copies a board from Redis to an archive, row by row.
func (f *fixture) copyTo(t require.TestingT, s *store.Store, board string, revision int64) store.Window {
	ctx := context.Background()
	b, err := f.boards.Top(ctx, board, f.window, 0, 100_000)
	require.NoError(t, err)
	w := store.Window{
		Board: board, Period: string(f.window.Period), Name: f.window.Name, Revision: revision,
		Start: time.UnixMilli(f.window.Start), End: time.UnixMilli(f.window.End), AsOf: time.UnixMilli(f.window.End + 5000),
		Zone: "UTC", Tick: b.Tick, Ledger: b.Beside.Ledger, Members: b.Members,
	}
	hidden := f.hidden(t, board)
	w.Hidden = int64(len(hidden))
	b.Standings = append(b.Standings, hidden...)
	for i := range hidden {
		b.Standings[int(b.Members)+i].Rank = 0
	}
	slices.SortFunc(b.Standings, boards.CompareRows)
	if revision > 0 {
		w.SealedAt = w.AsOf
	}
	if b.Fields.Len() > 0 {
		w.Fields = b.Fields.List()
	}
	var rows []store.Row
	for i, st := range b.Standings {
		r := store.Row{Place: int64(i + 1), Rank: st.Rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
		if b.Fields.Len() == 0 {
			r.Tuple[0] = st.Points
		}
		rows = append(rows, r)
	}
	writing, err := s.Begin(ctx, leader, w)
	require.NoError(t, err)
	require.NoError(t, writing.Append(ctx, rows))
	require.NoError(t, writing.Finish(ctx))
	return writing.Window()
}

// archiveOf returns an archive configuration whose Open always succeeds.
func archiveOf(s *store.Store) *Archive {
	return &Archive{Open: func(context.Context) (*store.Store, error) { return s, nil }, Timeout: 20 * time.Second, Reads: 4}
}

func openStore(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

func sqliteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
}
