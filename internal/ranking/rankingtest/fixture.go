// Package rankingtest has the fixture of the tests of the packages below ranking: a shard with three current
// windows, and functions that read all keys under its prefix.
package rankingtest

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

// Day is a day in ms. Retention is that of all periods.
const (
	Day       = int64(24 * 60 * 60 * 1000)
	Retention = 60 * 24 * time.Hour
)

// Tester is a test, a benchmark or one run of a property.
type Tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// Main runs the tests with the only shard of a prefix, and again with one of several shards, since a
// store behaves the same in both. Benchmarks and fuzz tests run once.
func Main(m *testing.M) {
	code := m.Run()
	once := flag.Lookup("test.bench").Value.String() + flag.Lookup("test.fuzz").Value.String()
	if Shard, Of = 3, 5; code == 0 && once == "" {
		code = m.Run()
	}
	os.Exit(code)
}

// The number of the fixtures' shard, and the number of shards.
var (
	Shard = 0
	Of    = ledger.Shards(1)
)

// Alone makes the test's fixtures use the only shard, which has all members.
func Alone(t testing.TB) {
	t.Helper()
	i, n := Shard, Of
	Shard, Of = 0, 1
	t.Cleanup(func() { Shard, Of = i, n })
}

// Fixture is a shard and the next piece to apply.
type Fixture struct {
	Client *redis.Client
	Prefix string
	Store  *ranking.Store
	Now    int64 // ms; some time ago, but in every window
	Next   int64 // the offset of the ledger's position
	Piece  ledger.Piece
}

// Fixed returns a store on the shared Redis, with a ledger and a prefix of its own.
func Fixed(t testing.TB) *Fixture {
	t.Helper()
	f := New(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.Begin(t)
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

// New returns a fixture under a prefix.
func New(t Tester, client *redis.Client, prefix string) *Fixture {
	f := &Fixture{Client: client, Prefix: prefix, Now: lately(time.Now().UTC()).UnixMilli()}
	f.Store = f.StoreOf(t, func(*ranking.Config) {})
	f.Piece = f.NewPiece()
	return f
}

// StoreOf returns a store like the fixture's with a changed configuration.
func (f *Fixture) StoreOf(t Tester, change func(*ranking.Config)) *ranking.Store {
	t.Helper()
	c := ranking.Config{
		Client: f.Client, Prefix: f.Prefix, Shard: Shard, Shards: Of, Cluster: "c1", Timeout: 20 * time.Second,
		Periods: map[periods.Period]ranking.Period{periods.Weekly: {}, periods.Monthly: {}, periods.Yearly: {}},
	}
	for p := range c.Periods {
		layout, err := codec.New(codec.Readable, p.Length(), 99_999_999)
		require.NoError(t, err)
		c.Periods[p] = ranking.Period{Layout: layout, Retention: Retention}
	}
	change(&c)
	return ranking.New(c)
}

// NewPiece returns a piece with the current week, month and year of a board, and no members.
func (f *Fixture) NewPiece() ledger.Piece {
	var calendar periods.Calendar
	p := ledger.Piece{Partition: ledger.Partition{Topic: "events", Number: 3}, Expected: ledger.At(f.Next), Next: ledger.At(f.Next + 10)}
	for _, period := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
		w, err := calendar.At(period, f.Now)
		if err != nil {
			panic(err)
		}
		p.Windows = append(p.Windows, ledger.Window{Board: "global", Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End})
	}
	return p
}

// Window returns the piece's n-th window as a calendar window.
func (f *Fixture) Window(n int) periods.Window {
	w := f.Piece.Windows[n]
	return periods.Window{Period: periods.Period(w.Period), Name: w.Name, Start: w.Start, End: w.End}
}

// Begin starts the piece's partition.
func (f *Fixture) Begin(t Tester) {
	t.Helper()
	begun, err := f.Store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(f.Next)}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
}

// Apply sends the piece unchanged.
func (f *Fixture) Apply(t Tester) ledger.Answer {
	t.Helper()
	a, _, err := f.Store.Apply(t.Context(), &f.Piece)
	require.NoError(t, err)
	return a
}

// MustApply sends the piece from the ledger's position.
func (f *Fixture) MustApply(t Tester) {
	t.Helper()
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, f.Apply(t))
	f.Next += 10
}

// Add applies members to all windows.
func (f *Fixture) Add(t Tester, members ...ledger.Member) {
	t.Helper()
	f.Piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: members}}
	f.MustApply(t)
}

// Member returns a change of a member by points, at the fixture's time.
func (f *Fixture) Member(id string, points int64) ledger.Member {
	return ledger.Member{ID: []byte(id), Points: points, Time: f.Now}
}

// Key returns the sorted set of the piece's n-th window.
func (f *Fixture) Key(n int) string { return f.Store.Keys().Window(&f.Piece.Windows[n]) }

// Contents returns all keys under a prefix as text, with their expiry.
func Contents(t Tester, client *redis.Client, prefix string) map[string]string {
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

// Unchanged runs do and requires that it changes no key under the prefix.
func (f *Fixture) Unchanged(t Tester, do func()) {
	t.Helper()
	before := Contents(t, f.Client, f.Prefix)
	do()
	require.Equal(t, before, Contents(t, f.Client, f.Prefix))
}

// ExpiresAt requires a key to expire at want, Unix ms, to within a second: the time to live is read between
// two readings of the clock.
func (f *Fixture) ExpiresAt(t Tester, key string, want int64) {
	t.Helper()
	before := time.Now().UnixMilli()
	left, err := f.Client.PTTL(t.Context(), key).Result()
	require.NoError(t, err)
	after := time.Now().UnixMilli()
	require.Positive(t, left, "%s doesn't expire", key)
	require.GreaterOrEqual(t, want, before+left.Milliseconds()-1000, key)
	require.LessOrEqual(t, want, after+left.Milliseconds()+1000, key)
}

// Someone returns a fixture whose next piece adds points to an existing member.
func Someone(tb testing.TB) *Fixture {
	tb.Helper()
	f := Fixed(tb)
	f.Add(tb, f.Member("u1", 10))
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	return f
}

// Answers requires an answer, and that the call changed nothing.
func (f *Fixture) Answers(t Tester, want ledger.Answer) {
	t.Helper()
	f.Unchanged(t, func() {
		require.Equal(t, want, f.Apply(t))
	})
}

// Entry returns the listing of a window, of a board with the default rule.
func Entry(w ledger.Window, expires int64) string {
	l := ranking.Listing{Window: w, Expires: expires}
	return l.Text()
}

// Listed returns the listing of a window, of a board with the default rule.
func Listed(start, end, expires int64) string {
	return Entry(ledger.Window{Start: start, End: end}, expires)
}

// Listing returns a window's entry in the listing.
func (f *Fixture) Listing(t Tester, w ledger.Window) string {
	t.Helper()
	text, err := f.Client.HGet(t.Context(), f.Store.Keys().Windows(), w.Listing()).Result()
	require.NoError(t, err)
	return text
}

// Private returns a fixture on a server of its own, with a member who has 10 points and a piece that adds
// 10.
func Private(t *testing.T, args ...string) (*Fixture, *testenv.RedisServer) {
	t.Helper()
	server := testenv.PrivateRedis(t, args...)
	// The project's client, which does not retry.
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	f := New(t, client.(*redis.Client), "lb")
	f.Begin(t)
	f.Add(t, f.Member("u1", 10))
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	return f, server
}

// As returns a client of a user with the given ACL rules.
func (f *Fixture) As(t *testing.T, server *testenv.RedisServer, rules ...string) redis.UniversalClient {
	t.Helper()
	args := []any{"acl", "setuser", "worker", "reset", "on", ">p"}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, f.Client.Do(t.Context(), args...).Err())
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{server.Addr()}, Username: "worker", Password: "p", Timeout: 20 * time.Second})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// Windows appends the windows of a board to the piece, and returns their numbers.
func (f *Fixture) Windows(board string) (numbers []int) {
	for _, w := range f.NewPiece().Windows {
		w.Board = board
		numbers = append(numbers, len(f.Piece.Windows))
		f.Piece.Windows = append(f.Piece.Windows, w)
	}
	return numbers
}

// Both adds to global and to eu, and returns the windows of eu.
func (f *Fixture) Both(t testing.TB, m ledger.Member) (eu []int) {
	t.Helper()
	f.Piece = f.NewPiece()
	eu = f.Windows("eu")
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	f.Piece.Groups = []ledger.Group{{Windows: append([]int{0, 1, 2}, eu...), Members: []ledger.Member{m}}}
	f.MustApply(t)
	return eu
}

// Points returns each member's points in the piece's n-th window.
func (f *Fixture) Points(t testing.TB, n int) map[string]int64 {
	t.Helper()
	b, err := f.Top(t.Context(), "global", f.Window(n))
	require.NoError(t, err)
	all := map[string]int64{}
	for _, s := range b.Standings {
		all[s.Member] = s.Points
	}
	return all
}

// Del removes a key, which must exist.
func (f *Fixture) Del(t testing.TB, key string) {
	t.Helper()
	require.Equal(t, int64(1), f.Client.Del(t.Context(), key).Val())
}

// List writes an entry of the listing.
func (f *Fixture) List(t testing.TB, name, listing string) {
	t.Helper()
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Windows(), name, listing).Err())
}

// Top reads the first hundred rows of a board.
func (f *Fixture) Top(ctx context.Context, board string, w periods.Window) (ranking.Board, error) {
	p, err := f.Store.Read(ctx, &ranking.Query{Board: board, Window: w, Rows: ranking.Rows{From: ranking.FromTop, Below: 100}})
	return p.Board, err
}
