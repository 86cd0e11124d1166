package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// diffReport is the part of the JSON of diff that tests read.
type diffReport struct {
	Differ    int
	Positions []struct{ A, B *string }
	Windows   []struct{ Exact bool }
	Standings []struct {
		Member, Name string
		A, B         *struct{ Points *int64 }
	}
}

// boardsOf returns the boards that a consumer with this environment writes.
func boardsOf(t *testing.T, environ []string) *boards.Boards {
	t.Helper()
	l, err := config.Load("", environ)
	require.NoError(t, err)
	client, err := app.NewRedis(l.Config, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	all, err := app.NewBoards(l.Config, client, "some-cluster")
	require.NoError(t, err)
	return all
}

// written writes standings under a prefix, as a consumer with these settings does.
func written(t *testing.T, prefix string, points map[string]int64, settings ...string) []string {
	t.Helper()
	environ := append([]string{"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=" + prefix}, settings...)
	boards := boardsOf(t, environ)
	start := time.Date(2100, 1, 4, 0, 0, 0, 0, time.UTC).UnixMilli()
	for i, store := range boards.Shards() {
		begun, err := store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(0), Origin: &ledger.Origin{}}})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
		piece := &ledger.Piece{
			Partition: ledger.Partition{Topic: "points"}, Expected: ledger.At(0), Next: ledger.At(10),
			Windows: []ledger.Window{{Board: "global", Period: "weekly", Name: "2100-W01", Start: start, End: start + 7*24*3600*1000}},
		}
		g := ledger.Group{Windows: []int{0}}
		for id, n := range points {
			if boards.Of().Of(xxhash.Sum64String(id)) == i {
				g.Members = append(g.Members, ledger.Member{ID: []byte(id), Points: n, Time: start + 5000})
			}
		}
		if len(g.Members) > 0 {
			piece.Groups = []ledger.Group{g}
		}
		a, _, err := store.Apply(t.Context(), piece)
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	}
	return environ
}

// diffs executes diff with the prefix of environ plus a suffix, and expects this exit code.
func diffs(t *testing.T, environ []string, code int, with string, args ...string) (out, errs string) {
	t.Helper()
	got, out, errs := execute(t, environ, append([]string{"diff", "--with", strings.TrimPrefix(environ[1], "STANDINGS_REDIS_PREFIX=") + with}, args...)...)
	require.Equal(t, code, got, out+errs)
	return out, errs
}

// differences returns the report as JSON.
func differences(t *testing.T, environ []string, code int, with string) (r diffReport) {
	t.Helper()
	out, _ := diffs(t, environ, code, with, "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

// spaced returns a text with single spaces.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

const equalStandings = "Both ledgers are at the same positions.\n\n1 window equal of 1.\n"

// haveNames writes members' names to Redis, as a consumer does that counts names.
func haveNames(t *testing.T, environ []string, names map[string]string) {
	t.Helper()
	all := boardsOf(t, environ)
	for id, name := range names {
		key := all.Shards()[all.Of().Of(xxhash.Sum64String(id))].Keys().Names()
		require.NoError(t, testenv.RedisClient(t).HSet(t.Context(), key, id, "1 4103308800000 "+name).Err())
	}
}

func TestMembersAreListedWithWhatTheyAreCalled(t *testing.T) {
	prefix := testenv.Prefix(t)
	const named = "STANDINGS_EVENT_FIELDS_NAME=player.name"
	other := written(t, prefix+"-b", map[string]int64{"ann": 6, "bob": 7, "joe": 1, "sam": 3}, named)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1, "sam": 2}, named, "STANDINGS_REDIS_SHARDS=3")
	haveNames(t, environ, map[string]string{"ann": "Ada", "bob": "Bo", "eve": "\u202eevil\\\x1b[31m"})
	haveNames(t, other, map[string]string{"ann": "Anna", "bob": "Bo", "joe": "Joe"}) // ann has another name there
	out, errs := diffs(t, environ, 1, "-b")
	require.Equal(t, "consumer: the standings differ\n", errs)
	for _, says := range []string{
		"WINDOW MEMBER NAME " + prefix + " " + prefix + "-b", "ann Ada 5 at ", `eve \u202eevil\\\x1b[31m 1 at `, "joe Joe - 1 at ", "sam 2 at ",
	} {
		require.Contains(t, spaced(out), says)
	}
	var names []string
	for _, st := range differences(t, environ, 1, "-b").Standings {
		names = append(names, st.Name)
	}
	require.Equal(t, []string{"Ada", "\u202eevil\\\x1b[31m", "Joe", ""}, names)
	environ = slices.DeleteFunc(environ, func(s string) bool { return s == named })
	out, _ = diffs(t, environ, 1, "-b")
	require.NotContains(t, out, "NAME")
}

func TestOtherNumbersOfShardsAndLayoutsAreCompared(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 2}, "STANDINGS_REDIS_SHARDS=3")
	written(t, prefix+"-one", map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 2}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	written(t, prefix+"-five", map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 3}, "STANDINGS_REDIS_SHARDS=5")
	out, errs := diffs(t, environ, 0, "-one")
	require.Equal(t, equalStandings, out)
	require.Empty(t, errs)
	out, _ = diffs(t, environ, 1, "-five")
	require.Contains(t, out, "joe")
	require.NotContains(t, out, "ann")
	require.NotContains(t, out, "written meanwhile")
	// A shard that lags is shown; the text shows the lowest and the highest position.
	client := testenv.RedisClient(t)
	ledgers := client.Keys(t.Context(), prefix+":{2.*}:3:ledger").Val()
	require.Len(t, ledgers, 1)
	require.NoError(t, client.HSet(t.Context(), ledgers[0], "points/0", "8").Err())
	out, _ = diffs(t, environ, 0, "-one")
	require.Contains(t, spaced(out), "points/0 8 to 10 10 1 window equal of 1.")
	r := differences(t, environ, 0, "-one")
	require.Equal(t, "8", *r.Positions[0].A)
	require.False(t, r.Windows[0].Exact)
	// If several numbers of shards are found, the command does not guess.
	written(t, prefix+"-five", map[string]int64{"ann": 5}, "STANDINGS_REDIS_SHARDS=4")
	_, errs = diffs(t, environ, 2, "-five")
	require.Contains(t, errs, "there are boards of several numbers of shards (4, 5): set redis.shards to the one that is meant\n")
}

func TestWhatDiffersIsListedAsTextAndAsJSON(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve\x1b": 1}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	written(t, prefix+"-b", map[string]int64{"ann": 6, "bob": 7, "joe": 1}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	out, errs := diffs(t, environ, 1, "-b", "--limit", "2")
	require.Equal(t, "consumer: the standings differ\n", errs)
	require.Equal(t, "Both ledgers are at the same positions. WINDOW DIFFER global:weekly:2100-W01 3 0 windows equal of 1. WINDOW MEMBER lb lb-b "+
		"global:weekly:2100-W01 ann 5 at 2100-01-04 00:00:05.000 6 at 2100-01-04 00:00:05.000 "+
		`global:weekly:2100-W01 eve\x1b 1 at 2100-01-04 00:00:05.000 - and 1 more: --limit times are those of UTC`, strings.ReplaceAll(spaced(out), prefix, "lb"))
	out, _ = diffs(t, environ, 1, "-b", "--json")
	require.JSONEq(t, `{"a":"lb","b":"lb-b","equal":false,"differ":3,
		"positions":[{"partition":"points/0","a":"10","b":"10"}],
		"windows":[{"board":"global","period":"weekly","window":"2100-W01","start":"2100-01-04T00:00:00.000Z","end":"2100-01-11T00:00:00.000Z",
			"not_compared":null,"differ":3,"at_least":false,"exact":true}],
		"standings":[
			{"board":"global","period":"weekly","window":"2100-W01","member":"ann",
				"a":{"points":5,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null},"b":{"points":6,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null}},
			{"board":"global","period":"weekly","window":"2100-W01","member":"eve\u001b",
				"a":{"points":1,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null},"b":null},
			{"board":"global","period":"weekly","window":"2100-W01","member":"joe",
				"a":null,"b":{"points":1,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null}}]}`, strings.ReplaceAll(out, prefix, "lb"))

	// Nothing from Redis reaches a terminal raw.
	client := testenv.RedisClient(t)
	require.NoError(t, client.ZAdd(t.Context(), prefix+":{0}:global:weekly:2100-W01", redis.Z{Score: math.Inf(1), Member: "ann"}).Err())
	pipe := client.Pipeline()
	tag := prefix + "-b:{0}:"
	pipe.HSet(t.Context(), tag+"ledger", "points/0", "7..9@00000000000000ff", "points\x1b/7", "7\x1b\n")
	pipe.HSet(t.Context(), tag+"windows", "global:weekly:2100-W\x1b\n", `{"end":4103308800000,"expires":5000000000000,"start":4102704000000}`)
	pipe.ZAdd(t.Context(), tag+"global:weekly:2100-W\x1b\n", redis.Z{Score: 1, Member: "bob"})
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	_, out, errs = execute(t, environ, "diff", "--with", prefix+"-b")
	require.False(t, strings.ContainsFunc(out+errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%q", out)
	for _, says := range []string{`points\x1b/7 nothing 7\x1b\x0a`, "points/0 10 7..9@00000000000000ff", `global:weekly:2100-W\x1b\x0a`, "ann +Inf, which is no score"} {
		require.Contains(t, spaced(out), says)
	}
}

// Neither a comparison of nothing nor an interrupted one may look like equality.
func TestWhatIsNotKnownIsNeitherEqualNorDifferent(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5})
	written(t, prefix+"-b", map[string]int64{"ann": 5})
	for _, fits := range []string{"--board=global", "--period=weekly", "--window=2100-W01"} {
		diffs(t, environ, 0, "-b", fits)
	}
	for args, says := range map[string]string{
		"--board=globl":                    "--board globl: neither prefix has such a window",
		"--board=global --board=eu --json": "--board eu: neither prefix has such a window",
		"--period=daily":                   "--period daily: neither prefix has such a window",
		"--window=2100-W10":                "--window 2100-W10: neither prefix has such a window",
		"--limit 0":                        "--limit must be 1 to 1000000",
		"--period hourly":                  "hourly",
		"--board a/b":                      "is not a board name",
		"extra":                            "takes 0 arguments",
	} {
		out, errs := diffs(t, environ, 2, "-b", strings.Fields(args)...)
		require.Empty(t, out)
		require.Contains(t, errs, says)
	}
	for with, says := range map[string]string{
		"-none": "no standings under the prefix", "": "must not be the configured prefix", ":b": `:b" must be 1 to 64 letters`,
	} {
		_, errs := diffs(t, environ, 2, with)
		require.Contains(t, errs, says)
	}
	code, _, errs := execute(t, environ, "diff")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--with is required")
	_, errs = diffs(t, append(environ, "STANDINGS_REDIS_ADDRESSES="+clitest.ClosedPort(t)), 2, "x")
	require.Contains(t, errs, "can't connect to Redis at ")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stderr strings.Builder
	require.Equal(t, 2, consumer(ctx, []string{"diff", "--with", prefix + "-b"}, environ, strings.NewReader(""), &stderr, &stderr))
	require.Equal(t, "consumer: interrupted\n", stderr.String())
	// A window that cannot be compared may be equal or not, even if it is the only one.
	require.NoError(t, testenv.RedisClient(t).HSet(t.Context(), prefix+"-b:{0}:windows", "global:weekly:2100-W01", `{"end":4103308800000,"expires":5000000000000,"start":4102704000001}`).Err())
	out, errs := diffs(t, environ, 2, "-b")
	require.Equal(t, "consumer: 1 window could not be compared\n", errs)
	require.Contains(t, out, "not compared: it is cut otherwise")
}

// Banned members are hidden. If both prefixes have the ban, the member makes no difference; if one has it,
// the member exists only under the other.
func TestBansAreHonoured(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1}, "STANDINGS_REDIS_SHARDS=3")
	here := hiding.In(boardsOf(t, environ))
	there := hiding.In(boardsOf(t, written(t, prefix+"-b", map[string]int64{"ann": 5, "bob": 9, "eve": 1})))
	bob := bans.Key{Member: "bob"}
	require.NoError(t, errors.Join(here.Ban(t.Context(), bans.Ban{Key: bob}), there.Ban(t.Context(), bans.Ban{Key: bob})))
	require.True(t, differences(t, environ, 0, "-b").Windows[0].Exact)
	require.NoError(t, there.Unban(t.Context(), bob))
	r := differences(t, environ, 1, "-b")
	require.Len(t, r.Standings, 1)
	require.Nil(t, r.Standings[0].A)
	require.Equal(t, int64(9), *r.Standings[0].B.Points)
}
