package v1

// What these tests share: boards on a given number of shards, with standings written directly to Redis.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/testenv"
)

var nopLog = zap.NewNop()

// fixture is an API and its boards: global has the default rule; arena ranks by the furthest stage, then by the
// fewest revives.
type fixture struct {
	http.Handler
	t      testing.TB
	client *redis.Client
	boards *boards.Boards
	prefix string
	window periods.Window
	rule   rules.Rule
	config Config
}

const maxPoints = 1_000_000

func newFixture(t testing.TB, of ledger.Shards, kind codec.Kind, change ...func(*Config, *reading.Config)) *fixture {
	t.Helper()
	return fixtureOn(t, testenv.RedisClient(t), testenv.Prefix(t), of, kind, change...)
}

func fixtureOn(t testing.TB, client *redis.Client, prefix string, of ledger.Shards, kind codec.Kind, change ...func(*Config, *reading.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, client: client, prefix: prefix}
	var calendar periods.Calendar
	var err error
	f.window, err = calendar.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(t, err)
	layout, err := codec.New(kind, periods.Weekly.Length(), maxPoints)
	require.NoError(t, err)
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 999}, codec.Field{Name: "revives", Max: 99, Fewest: true})
	require.NoError(t, err)
	f.rule, err = rules.New(rules.Best, fields)
	require.NoError(t, err)
	ruled, err := codec.NewTupleLayout(kind, periods.Weekly.Length(), fields)
	require.NoError(t, err)
	stores := ranking.Config{
		Client: f.client, Prefix: f.prefix, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
		Boards:  map[string]*ranking.Ruled{"arena": {Rule: &f.rule, Layouts: map[periods.Period]codec.TupleLayout{periods.Weekly: ruled}}},
	}
	f.boards = boards.New(stores)
	for _, s := range f.boards.Shards() {
		begun, err := s.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(10), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
	}
	byDefault, err := rules.Default(maxPoints)
	require.NoError(t, err)
	read := reading.Config{
		Boards: f.boards, Topics: []string{"points"},
		Renumber: func(context.Context, ledger.Shards) (*boards.Boards, error) {
			return nil, errors.New("nobody has changed the number of shards")
		},
		Periods: []reading.Period{{Rule: periods.BuiltIn(periods.Weekly, calendar), Zone: "UTC"}, {Rule: periods.BuiltIn(periods.Monthly, calendar), Zone: "UTC"}},
		CheckBoard: func(name string) error {
			if strings.ContainsAny(name, "/ ") || name == "" {
				return errors.New("isn't a board's name")
			}
			return nil
		},
		Has: func(_ string, p periods.Period) bool { return p == periods.Weekly },
		Rule: func(board string) rules.Rule {
			if board == "arena" {
				return f.rule
			}
			return byDefault
		},
	}
	f.config = Config{Timeout: 20 * time.Second, Requests: 64, Streams: 200, Metrics: NewMetrics(), Log: nopLog}
	for _, c := range change {
		c(&f.config, &read)
	}
	f.config.Reader = reading.New(read)
	api := New(f.config)
	f.Handler = api
	t.Cleanup(func() {
		api.EndStreams()
		api.Wait()
	})
	return f
}

// put writes standings of a board.
func (f *fixture) put(board string, all ...ranking.Standing) {
	f.t.Helper()
	pipe := f.client.Pipeline()
	w := f.window
	rule := ""
	if board == "arena" {
		rule = f.rule.Text()
	}
	listing := ranking.Listing{Window: ledger.Window{Start: w.Start, End: w.End}, Rule: rule, Expires: w.End + int64(24*time.Hour/time.Millisecond)}
	for _, st := range all {
		keys := f.boards.Shards()[f.boards.Of().Of(xxhash.Sum64String(st.Member))].Keys()
		name := board + ":weekly:" + w.Name
		pipe.ZAdd(f.t.Context(), keys.Listed(name), redis.Z{Score: st.Score, Member: st.Member})
		pipe.HSet(f.t.Context(), keys.Windows(), name, listing.Text())
		if pipe.Len() >= 400 {
			_, err := pipe.Exec(f.t.Context())
			require.NoError(f.t, err)
		}
	}
	_, err := pipe.Exec(f.t.Context())
	require.NoError(f.t, err)
}

// standing returns a standing that was reached the given number of ticks after the window's start.
func (f *fixture) standing(board, member string, ticks int64, values ...int64) ranking.Standing {
	f.t.Helper()
	layout, ok := f.boards.Layout(board, periods.Weekly)
	require.True(f.t, ok)
	var tuple codec.Tuple
	copy(tuple[:], values)
	left := layout.Ticks(f.window.Start, f.window.End, f.window.Start+ticks*layout.Tick)
	score, err := layout.Encode(tuple, left)
	require.NoError(f.t, err)
	st := ranking.Standing{Member: member, Score: score, ReachedAt: time.UnixMilli(layout.Time(f.window.Start, f.window.End, left)).UTC()}
	if board == "arena" {
		st.Tuple = tuple
	} else {
		st.Points = values[0]
	}
	return st
}

// ranked is the model: it sorts by score, then by member id, both descending.
func ranked(all []ranking.Standing) []ranking.Standing {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b ranking.Standing) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member))
	})
	for i := range all {
		all[i].Rank = int64(i + 1)
	}
	return all
}

// w is the path of the board's current window.
func w(board string) string { return "/v1/boards/" + board + "/periods/weekly/windows/current" }

// get sends a GET. query alternates names and values.
func (f *fixture) get(path string, query ...string) said {
	f.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Add(query[i], query[i+1])
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return ask(f.t, f, httptest.NewRequest(http.MethodGet, path, nil))
}

// read returns the body of a GET, which must succeed.
func read[T any](f *fixture, path string, query ...string) T {
	f.t.Helper()
	a := f.get(path, query...)
	require.Equal(f.t, http.StatusOK, a.status, "%s", a.body)
	return decode[T](f.t, a.body)
}

func decode[T any](t testing.TB, body []byte) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(body, &v), "%s", body)
	return v
}
