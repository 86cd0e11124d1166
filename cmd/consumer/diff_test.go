package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// diffReport is the part of the JSON of diff that tests read.
type diffReport struct {
	Equal     bool
	Differ    int
	Positions []struct{ A, B *string }
	Windows   []struct {
		Differ int
		Exact  bool
	}
	Standings []struct {
		Member string
		Name   *string
		A, B   *struct{ Points *int64 }
	}
}

// boardsOf returns the boards that a consumer with this environment writes.
func boardsOf(t *testing.T, environ []string) *boards.Boards {
	t.Helper()
	l, err := config.Load("", environ)
	if err != nil {
		t.Fatal(err)
	}
	client, err := app.NewRedis(l.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	all, err := app.NewBoards(l.Config, client, "some-cluster")
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil || begun != ledger.Began {
			t.Fatalf("%v %v", begun, err)
		}
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
		if a, _, err := store.Apply(t.Context(), piece); err != nil || a.Outcome != ledger.Applied {
			t.Fatalf("%v %v", a, err)
		}
	}
	return environ
}

// haveNames writes members' names to Redis, as a consumer does that counts names.
func haveNames(t *testing.T, client *redis.Client, environ []string, names map[string]string) {
	t.Helper()
	all := boardsOf(t, environ)
	for id, name := range names {
		key := all.Shards()[all.Of().Of(xxhash.Sum64String(id))].Keys().Names()
		if err := client.HSet(t.Context(), key, id, "1 4103308800000 "+name).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMembersAreListedWithWhatTheyAreCalled(t *testing.T) {
	prefix, client := testenv.Prefix(t), testenv.RedisClient(t)
	settings := []string{"STANDINGS_EVENT_FIELDS_NAME=player.name"}
	other := written(t, prefix+"-b", map[string]int64{"ann": 6, "bob": 7, "joe": 1, "sam": 3}, settings...)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1, "sam": 2}, append(settings, "STANDINGS_REDIS_SHARDS=3")...)
	haveNames(t, client, environ, map[string]string{"ann": "Ada", "bob": "Bo", "eve": "\u202eevil\\\x1b[31m"})
	haveNames(t, client, other, map[string]string{"ann": "Anna", "bob": "Bo", "joe": "Joe"}) // ann has another name there
	diff := func(more ...string) string {
		t.Helper()
		code, out, errs := execute(t, environ, append([]string{"diff", "--with", prefix + "-b"}, more...)...)
		if code != 1 || errs != "consumer: the standings differ\n" {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		return out
	}
	out := strings.Join(strings.Fields(diff()), " ")
	for _, says := range []string{
		"WINDOW MEMBER NAME " + prefix + " " + prefix + "-b", "ann Ada 5 at ", `eve \u202eevil\\\x1b[31m 1 at `, "joe Joe - 1 at ", "sam 2 at ",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("%q isn't in:\n%s", says, out)
		}
	}
	var r diffReport
	if err := json.Unmarshal([]byte(diff("--json")), &r); err != nil || len(r.Standings) != 4 {
		t.Fatalf("%v: %+v", err, r.Standings)
	}
	for i, name := range []string{"Ada", "\u202eevil\\\x1b[31m", "Joe", ""} {
		if st := r.Standings[i]; name == "" && st.Name != nil || name != "" && (st.Name == nil || *st.Name != name) {
			t.Errorf("%s is called %v, want %q", st.Member, st.Name, name)
		}
	}
}

func TestStandingsOfOtherNumbersOfShardsAreCompared(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 2}, "STANDINGS_REDIS_SHARDS=3")
	written(t, prefix+"-one", map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 2})
	written(t, prefix+"-five", map[string]int64{"ann": 5, "bob": 7, "eve": 1, "joe": 3}, "STANDINGS_REDIS_SHARDS=5")
	code, out, errs := execute(t, environ, "diff", "--with", prefix+"-one")
	if want := "Both ledgers are at the same positions.\n\n1 window equal of 1.\n"; code != 0 || out != want || errs != "" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = execute(t, environ, "diff", "--with", prefix+"-five")
	if code != 1 || !strings.Contains(out, "joe") || strings.Contains(out, "ann") || strings.Contains(out, "written meanwhile") {
		t.Errorf("exit code %d: %s", code, out)
	}
	// A shard that lags is shown; the text shows the lowest and the highest position.
	client := testenv.RedisClient(t)
	ledgers, err := client.Keys(t.Context(), prefix+":{2.*}:3:ledger").Result()
	if err != nil || len(ledgers) != 1 {
		t.Fatalf("%v %v", ledgers, err)
	}
	if err := client.HSet(t.Context(), ledgers[0], "points/0", "8").Err(); err != nil {
		t.Fatal(err)
	}
	code, out, _ = execute(t, environ, "diff", "--with", prefix+"-one")
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "points/0 8 to 10 10 1 window equal of 1.") {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out, _ = execute(t, environ, "diff", "--with", prefix+"-one", "--json")
	var r diffReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || *r.Positions[0].A != "8" || r.Windows[0].Exact {
		t.Errorf("exit code %d: %s", code, out)
	}
	// If several numbers of shards are found, the command does not guess.
	written(t, prefix+"-five", map[string]int64{"ann": 5}, "STANDINGS_REDIS_SHARDS=4")
	code, _, errs = execute(t, environ, "diff", "--with", prefix+"-five")
	if want := fmt.Sprintf("consumer: under the prefix %q there are boards of several numbers of shards (4, 5): set redis.shards to the one that is meant\n", prefix+"-five"); code != 2 || errs != want {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestWhatDiffersIsCountedAndListed(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve\x1b": 1})
	written(t, prefix+"-wide", map[string]int64{"ann": 6, "bob": 7, "joe": 1}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	code, out, errs := execute(t, environ, "diff", "--with", prefix+"-wide", "--limit", "2")
	if code != 1 || errs != "consumer: the standings differ\n" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, says := range []string{
		"global:weekly:2100-W01", "0 windows equal of 1.", "and 1 more: --limit times are those of UTC",
		"WINDOW DIFFER", "MEMBER " + prefix + " " + prefix + "-wide", // in their layouts
		"ann     5 at 2100-01-04 00:00:05.", "6 at 2100-01-04 00:00:05.000", `eve\x1b`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(says), " ")) {
			t.Errorf("%q isn't in:\n%s", says, out)
		}
	}
	client := testenv.RedisClient(t)
	if err := client.ZAdd(t.Context(), prefix+":{0}:global:weekly:2100-W01", redis.Z{Score: math.Inf(1), Member: "ann"}).Err(); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"--json", "--json=false"} {
		code, out, errs = execute(t, environ, "diff", "--with", prefix+"-wide", form)
		if code != 1 || !strings.Contains(out, "+Inf") {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
}

// Neither a comparison of nothing nor an interrupted one may look like equality.
func TestWhatIsNotKnownIsNeitherEqualNorDifferent(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5})
	written(t, prefix+"-b", map[string]int64{"ann": 5})
	diff := func(with string, more ...string) (int, string, string) {
		return execute(t, environ, append([]string{"diff", "--with", prefix + with}, more...)...)
	}
	for _, fits := range []string{"--board=global", "--period=weekly", "--window=2100-W01"} {
		if code, _, errs := diff("-b", fits); code != 0 || errs != "" {
			t.Errorf("%s: exit code %d: %s", fits, code, errs)
		}
	}
	for args, says := range map[string]string{
		"--board=globl":                    "--board globl: neither prefix has such a window",
		"--board=global --board=eu --json": "--board eu: neither prefix has such a window",
		"--period=daily":                   "--period daily: neither prefix has such a window",
		"--window=2100-W10":                "--window 2100-W10: neither prefix has such a window",
	} {
		if code, out, errs := diff("-b", strings.Fields(args)...); code != 2 || out != "" || errs != "consumer: "+says+"\n" {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, errs)
		}
	}
	if code, _, errs := diff("-none"); code != 2 || !strings.Contains(errs, "no standings under the prefix") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	code, _, errs := execute(t, append(environ, "STANDINGS_REDIS_ADDRESSES="+clitest.ClosedPort(t)), "diff", "--with", "x")
	if code != 2 || !strings.Contains(errs, "can't connect to Redis at ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stderr strings.Builder
	if code := consumer(ctx, []string{"diff", "--with", prefix + "-b"}, environ, strings.NewReader(""), &stderr, &stderr); code != 2 || stderr.String() != "consumer: interrupted\n" {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	// A window that cannot be compared may be equal or not, even if it is the only one.
	client := testenv.RedisClient(t)
	if err := client.HSet(t.Context(), prefix+"-b:{0}:windows", "global:weekly:2100-W01", `{"end":4103308800000,"expires":5000000000000,"start":4102704000001}`).Err(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := diff("-b")
	if code != 2 || errs != "consumer: 1 window could not be compared\n" || !strings.Contains(out, "not compared: it is cut otherwise") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestTheJSONOfADiff(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	written(t, prefix+"-b", map[string]int64{"ann": 6, "bob": 7}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	code, out, errs := execute(t, environ, "diff", "--with", prefix+"-b", "--json")
	if code != 1 || errs != "consumer: the standings differ\n" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	require.JSONEq(t, `{"a":"lb","b":"lb-b","equal":false,"differ":2,
		"positions":[{"partition":"points/0","a":"10","b":"10"}],
		"windows":[{"board":"global","period":"weekly","window":"2100-W01","start":"2100-01-04T00:00:00.000Z","end":"2100-01-11T00:00:00.000Z",
			"not_compared":null,"differ":2,"at_least":false,"exact":true}],
		"standings":[
			{"board":"global","period":"weekly","window":"2100-W01","member":"ann",
				"a":{"points":5,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null},"b":{"points":6,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null}},
			{"board":"global","period":"weekly","window":"2100-W01","member":"eve",
				"a":{"points":1,"reached_at":"2100-01-04T00:00:05.000Z","foreign_score":null},"b":null}]}`, strings.ReplaceAll(out, prefix, "lb"))
}

func TestADiffWritesNothingRawToATerminal(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann\x1b": 5})
	written(t, prefix+"-b", map[string]int64{"ann\x1b": 6})
	client := testenv.RedisClient(t)
	tag := prefix + "-b:{0}:"
	pipe := client.Pipeline()
	pipe.HSet(t.Context(), tag+"ledger", "points\x1b/7", "7\x1b\n", "points/0", "7..9@00000000000000ff", "points/1", "3")
	pipe.HSet(t.Context(), tag+"windows", "global:weekly:2100-W\x1b\n", `{"end":4103308800000,"expires":5000000000000,"start":4102704000000}`)
	pipe.ZAdd(t.Context(), tag+"global:weekly:2100-W\x1b\n", redis.Z{Score: 1, Member: "bob"})
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, out, errs := execute(t, environ, "diff", "--with", prefix+"-b")
	if strings.ContainsFunc(out+errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%q", out)
	}
	for _, says := range []string{"points/0      10       7..9@00000000000000ff", "points/1      nothing  3", `points\x1b/7  nothing`, `7\x1b\x0a`, `global:weekly:2100-W\x1b\x0a`, `ann\x1b`} {
		if !strings.Contains(out, says) {
			t.Errorf("%q isn't in:\n%s%s", says, out, errs)
		}
	}
}

func TestADiffOfAWrongCommandLineIsRefused(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5})
	for args, says := range map[string]string{
		"diff":                              "--with is required",
		"diff --with " + prefix:             "must not be the configured prefix",
		"diff --with a:b":                   `--with "a:b" must be 1 to 64 letters`,
		"diff --with x --limit 0":           "--limit must be 1 to 1000000",
		"diff --with x --period hourly":     "hourly",
		"diff --with x --board a/b":         "is not a board name",
		"diff --with x extra":               "takes 0 arguments",
		fmt.Sprint("diff --with ", "x{0}*"): "must be 1 to 64 letters",
	} {
		code, _, errs := execute(t, environ, strings.Fields(args)...)
		if code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}
