package shadow

// Helpers of these tests: a store with three current windows, and functions that read all keys under its
// prefix.

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
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

const (
	day       = int64(24 * 60 * 60 * 1000)
	retention = 60 * 24 * time.Hour
)

// tester is a test, a benchmark or one run of a property.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// TestMain runs the tests with the only shard of a prefix, and again with one of several shards, since a
// store behaves the same in both. Benchmarks and fuzz tests run once.
func TestMain(m *testing.M) {
	code := m.Run()
	once := flag.Lookup("test.bench").Value.String() + flag.Lookup("test.fuzz").Value.String()
	if shard, of = 3, 5; code == 0 && once == "" {
		code = m.Run()
	}
	os.Exit(code)
}

// shard and of are the number of the fixture's shard, and the number of shards.
var shard, of = 0, ledger.Shards(1)

type fixture struct {
	client *redis.Client
	prefix string
	store  *ranking.Store
	now    int64 // ms; some time ago, but in every window
	next   int64 // the offset of the ledger's position
	piece  ledger.Piece
}

// fixed returns a store on the shared Redis, with a ledger and a prefix of its own.
func fixed(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.begin(t)
	return f
}

// lately returns an hour ago, or the beginning of today if that is later: no window has ended since.
func lately(now time.Time) time.Time {
	today, hour := now.Truncate(24*time.Hour), now.Add(-time.Hour)
	if hour.Before(today) {
		return today
	}
	return hour
}

func newFixture(t tester, client *redis.Client, prefix string) *fixture {
	f := &fixture{client: client, prefix: prefix, now: lately(time.Now().UTC()).UnixMilli()}
	f.store = f.storeOf(t, func(*ranking.Config) {})
	f.piece = f.newPiece()
	return f
}

// storeOf returns a store like the fixture's with a changed configuration.
func (f *fixture) storeOf(t tester, change func(*ranking.Config)) *ranking.Store {
	t.Helper()
	c := ranking.Config{
		Client: f.client, Prefix: f.prefix, Shard: shard, Shards: of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {}, periods.Monthly: {}, periods.Yearly: {}},
	}
	for p := range c.Periods {
		layout, err := codec.New(codec.Readable, p.Length(), 99_999_999)
		require.NoError(t, err)
		c.Periods[p] = ranking.Period{Layout: layout, Retention: retention}
	}
	change(&c)
	return ranking.New(c)
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
		p.Windows = append(p.Windows, ledger.Window{Board: "global", Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End})
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

// mustApply sends the piece from the ledger's position.
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
func (f *fixture) key(n int) string { return f.store.Keys().Window(&f.piece.Windows[n]) }

// contents returns all keys under a prefix as text, with their expiry.
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

// unchanged runs do and requires that it changes no key under the prefix.
func (f *fixture) unchanged(t tester, do func()) {
	t.Helper()
	before := contents(t, f.client, f.prefix)
	do()
	require.Equal(t, before, contents(t, f.client, f.prefix))
}

// expiresAt requires a key to expire at want, Unix ms, to within a second: the time to live is read between
// two readings of the clock.
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

func redisZ(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

// keyed is a store: the live one or a shadow.
type keyed interface {
	Keys() ranking.Keys
	Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error)
}

// someone returns a fixture whose next piece adds points to an existing member.
func someone(tb testing.TB) *fixture {
	tb.Helper()
	f := fixed(tb)
	f.add(tb, f.member("u1", 10))
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	return f
}

// answers requires an answer, and that the call changed nothing.
func (f *fixture) answers(t tester, want ledger.Answer) {
	t.Helper()
	f.unchanged(t, func() {
		require.Equal(t, want, f.apply(t))
	})
}

func beginning(partition int, found string, at int64, origin *ledger.Origin) ledger.StartPosition {
	return ledger.StartPosition{Partition: ledger.Partition{Topic: "events", Number: partition}, Found: found, At: ledger.At(at), Origin: origin}
}

// entry returns the listing of a window, of a board with the default rule.
func entry(w ledger.Window, expires int64) string {
	l := ranking.Listing{Window: w, Expires: expires}
	return l.Text()
}

func listed(start, end, expires int64) string {
	return entry(ledger.Window{Start: start, End: end}, expires)
}

func (f *fixture) listing(t tester, w ledger.Window) string {
	t.Helper()
	text, err := f.client.HGet(t.Context(), f.store.Keys().Windows(), w.Listing()).Result()
	require.NoError(t, err)
	return text
}

// private returns a fixture on a server of its own, with a member who has 10 points and a piece that adds
// 10.
func private(t *testing.T, args ...string) (*fixture, *testenv.RedisServer) {
	t.Helper()
	server := testenv.PrivateRedis(t, args...)
	// The project's client, which does not retry.
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	f := newFixture(t, client.(*redis.Client), "lb")
	f.begin(t)
	f.add(t, f.member("u1", 10))
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	return f, server
}

// as returns a client of a user with the given ACL rules.
func (f *fixture) as(t *testing.T, server *testenv.RedisServer, rules ...string) redis.UniversalClient {
	t.Helper()
	args := []any{"acl", "setuser", "worker", "reset", "on", ">p"}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, f.client.Do(t.Context(), args...).Err())
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Username: "worker", Password: "p", Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// redisCPU returns the CPU time that the Redis server has used.
func redisCPU(b *testing.B, client *redis.Client) time.Duration {
	b.Helper()
	info, err := client.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	var sum float64
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if text, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				require.NoError(b, err)
				sum += seconds
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// incomplete lists the partitions whose origin is after the start of a week, as readers do.
func incomplete(origins map[string]string, start int64) (all []string, err error) {
	return ranking.Incomplete(&ledger.State{Origins: origins}, "global", "weekly", start)
}

// of appends the windows of a board to the piece, and returns their numbers.
func (f *fixture) of(board string) (numbers []int) {
	for _, w := range f.newPiece().Windows {
		w.Board = board
		numbers = append(numbers, len(f.piece.Windows))
		f.piece.Windows = append(f.piece.Windows, w)
	}
	return numbers
}

// both adds to global and to eu, and returns the windows of eu.
func (f *fixture) both(t testing.TB, m ledger.Member) (eu []int) {
	t.Helper()
	f.piece = f.newPiece()
	eu = f.of("eu")
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{{Windows: append([]int{0, 1, 2}, eu...), Members: []ledger.Member{m}}}
	f.mustApply(t)
	return eu
}
