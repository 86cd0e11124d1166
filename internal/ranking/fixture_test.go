package ranking

// Shared test code: a store with three windows around the present, and helpers that read everything under
// its prefix.

import (
	"context"
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/testenv"
)

var kinds = []codec.Kind{codec.Readable, codec.Wide}

const (
	day       = int64(24 * 60 * 60 * 1000)
	retention = 60 * 24 * time.Hour
)

// tester is a test, a benchmark, or a run of a property.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// TestMain runs the tests with a single shard, and again with one of several shards: a store must behave
// alike. It runs benchmarks and fuzz tests, and everything in a short run, only once.
func TestMain(m *testing.M) {
	code := m.Run()
	once := flag.Lookup("test.bench").Value.String() + flag.Lookup("test.fuzz").Value.String()
	if shard, of = 3, 5; code == 0 && once == "" && !testing.Short() {
		code = m.Run()
	}
	os.Exit(code)
}

// shard and of are the index of the fixtures' shard and the number of shards.
var shard, of = 0, ledger.Shards(1)

type fixture struct {
	client *redis.Client
	prefix string
	store  *Store
	now    int64 // Unix ms: some time ago, but in every window
	next   int64 // offset of the ledger
	piece  ledger.Piece
}

// fixed returns a fixture on the shared Redis, with a started ledger and its own prefix.
func fixed(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.begin(t)
	return f
}

// fixedAs is fixed with another layout.
func fixedAs(t testing.TB, kind codec.Kind, most int64) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.use(t, kind, most)
	f.begin(t)
	return f
}

// lately returns the time an hour ago, or the start of today if that was later: no window has ended since.
func lately(now time.Time) time.Time {
	today, hour := now.Truncate(24*time.Hour), now.Add(-time.Hour)
	if hour.Before(today) {
		return today
	}
	return hour
}

func newFixture(t tester, client *redis.Client, prefix string) *fixture {
	f := &fixture{client: client, prefix: prefix, now: lately(time.Now().UTC()).UnixMilli()}
	f.use(t, codec.Readable, 99_999_999)
	f.piece = f.newPiece()
	return f
}

// offlineFixture returns a fixture without a Redis.
func offlineFixture(t tester) *fixture {
	return newFixture(t, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "lb")
}

// use replaces the store by one with another layout.
func (f *fixture) use(t tester, kind codec.Kind, most int64) {
	t.Helper()
	f.store = f.storeOf(t, func(c *Config) {
		for p := range c.Periods {
			layout, err := codec.New(kind, p.Length(), most)
			require.NoError(t, err)
			c.Periods[p] = Period{Layout: layout, Retention: retention}
		}
	})
}

// storeOf returns a store like the fixture's with another configuration.
func (f *fixture) storeOf(t tester, change func(*Config)) *Store {
	t.Helper()
	c := Config{
		Client: f.client, Prefix: f.prefix, Shard: shard, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]Period{periods.Weekly: {}, periods.Monthly: {}, periods.Yearly: {}},
	}
	for p := range c.Periods {
		layout, err := codec.New(codec.Readable, p.Length(), 99_999_999)
		require.NoError(t, err)
		c.Periods[p] = Period{Layout: layout, Retention: retention}
	}
	change(&c)
	return New(c)
}

// alone runs a test with a single shard.
func alone(t testing.TB) {
	t.Helper()
	i, n := shard, of
	shard, of = 0, 1
	t.Cleanup(func() { shard, of = i, n })
}

// newPiece returns a piece with the current week, month and year of a board, and no members.
func (f *fixture) newPiece() ledger.Piece {
	var calendar periods.Calendar
	p := ledger.Piece{Partition: ledger.Partition{Topic: "events", Number: 3}, Expected: ledger.At(f.next), Next: ledger.At(f.next + 10)}
	for _, period := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
		w, err := calendar.At(period, f.now)
		if err != nil {
			panic(err)
		}
		p.Windows = append(p.Windows, listed("global", w))
	}
	return p
}

// window returns the piece's n-th window as a calendar window.
func (f *fixture) window(n int) periods.Window {
	w := f.piece.Windows[n]
	return periods.Window{Period: periods.Period(w.Period), Name: w.Name, Start: w.Start, End: w.End}
}

func (f *fixture) begin(t tester) {
	t.Helper()
	begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(f.next)}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
}

// apply sends the piece unchanged.
func (f *fixture) apply(t tester) ledger.Answer {
	t.Helper()
	a, _, err := f.store.Apply(t.Context(), &f.piece)
	require.NoError(t, err)
	return a
}

// check checks the piece unchanged.
func (f *fixture) check(t tester) ledger.Answer {
	t.Helper()
	a, err := f.store.Check(t.Context(), &f.piece)
	require.NoError(t, err)
	return a
}

// mustApply sends the piece with the ledger's position as expected.
func (f *fixture) mustApply(t tester) {
	t.Helper()
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, f.apply(t))
	f.next += 10
}

// add applies members to all windows.
func (f *fixture) add(t tester, members ...ledger.Member) {
	t.Helper()
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
	f.mustApply(t)
}

func (f *fixture) member(id string, points int64) ledger.Member {
	return ledger.Member{ID: []byte(id), Points: points, Time: f.now}
}

// key returns the sorted set of the piece's n-th window.
func (f *fixture) key(n int) string { return f.store.keys.Window(&f.piece.Windows[n]) }

// contents returns everything under a prefix as text, with the times of expiry.
func contents(t tester, client *redis.Client, prefix string) map[string]string {
	t.Helper()
	ctx := t.Context()
	all := map[string]string{}
	keys, err := client.Keys(ctx, prefix+"*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		kind, err := client.Type(ctx, key).Result()
		require.NoError(t, err)
		text := kind + " "
		switch kind {
		case "string":
			text += strconv.Quote(client.Get(ctx, key).Val())
		case "hash":
			fields := client.HGetAll(ctx, key).Val()
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				text += strconv.Quote(f) + "=" + strconv.Quote(fields[f]) + " "
			}
		case "zset":
			for _, z := range client.ZRangeWithScores(ctx, key, 0, -1).Val() {
				text += strconv.Quote(z.Member.(string)) + "=" + strconv.FormatFloat(z.Score, 'g', -1, 64) + " "
			}
		}
		if client.PTTL(ctx, key).Val() > 0 {
			text += "expires"
		}
		all[strings.TrimPrefix(key, prefix)] = text
	}
	return all
}

// unchanged requires that do changes nothing under the prefix.
func (f *fixture) unchanged(t tester, do func()) {
	t.Helper()
	before := contents(t, f.client, f.prefix)
	do()
	require.Equal(t, before, contents(t, f.client, f.prefix))
}

// hasLine stores a worker's line.
func (f *fixture) hasLine(t tester, field, line string) {
	t.Helper()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Workers(), field, line).Err())
}

// expiresAt requires a key to expire at a time, Unix ms, within a second: Redis reports the remaining time
// at some moment between two readings of the clock.
func (f *fixture) expiresAt(t tester, key string, want int64) {
	t.Helper()
	before := time.Now().UnixMilli()
	left, err := f.client.PTTL(t.Context(), key).Result()
	require.NoError(t, err)
	after := time.Now().UnixMilli()
	require.Positive(t, left, "%s doesn't expire", key)
	require.GreaterOrEqual(t, want, before+left.Milliseconds()-1000, key)
	require.LessOrEqual(t, want, after+left.Milliseconds()+1000, key)
}

// eavesdropper receives the arguments of every call and can make the call fail.
type eavesdropper func(args []any) error

func (eavesdropper) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a eavesdropper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := a(cmd.Args()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}
func (eavesdropper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// points returns the points of each member in the piece's n-th window.
func (f *fixture) del(t testing.TB, key string) {
	t.Helper()
	require.Equal(t, int64(1), f.client.Del(t.Context(), key).Val())
}

// entry returns an entry of the listing, for a board with the default rule.
func entry(start, end, expires int64) string {
	l := Listing{Window: ledger.Window{Start: start, End: end}, Expires: expires}
	return l.Text()
}

// listingOf parses an entry of the listing.
func listingOf(t tester, text string) Listing {
	t.Helper()
	l, err := ParseListing("a:b:c", text)
	require.NoError(t, err)
	return l
}

func (f *fixture) list(t testing.TB, name, listing string) {
	t.Helper()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, listing).Err())
}

// Top reads standings of the shard from offset on.
func (s *Store) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Rows: Rows{From: FromTop, Skip: offset, Below: limit}})
	return p.Board, err
}

// Rank reads the standings of members of the shard, in the given order.
func (s *Store) Rank(ctx context.Context, board string, w periods.Window, members ...string) (Board, error) {
	p, err := s.Read(ctx, &Query{Board: board, Window: w, Members: members})
	return p.Board, err
}
