package diff

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/clitest"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/testenv"
)

// written writes standings under a prefix, as a consumer with some settings does.
func written(t *testing.T, prefix string, points map[string]int64, settings ...string) []string {
	t.Helper()
	environ := append([]string{"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=" + prefix}, settings...)
	l, err := config.Load("", environ)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clients.NewRedis(l.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	store, err := clients.NewStore(l.Config, client, "some-cluster")
	if err != nil {
		t.Fatal(err)
	}
	begun, err := store.Begin(t.Context(), []ledger.Beginning{{Topic: "points", At: ledger.At(0), Origin: &ledger.Origin{}}})
	if err != nil || begun != ledger.Began {
		t.Fatalf("%v %v", begun, err)
	}
	start := time.Date(2100, 1, 4, 0, 0, 0, 0, time.UTC).UnixMilli()
	piece := &ledger.Piece{
		Topic: "points", Expected: ledger.At(0), Next: ledger.At(10),
		Windows: []ledger.Window{{Board: "global", Period: "weekly", Name: "2100-W01", Start: start, End: start + 7*24*3600*1000}},
	}
	g := ledger.Group{Windows: []int{0}}
	for id, n := range points {
		g.Members = append(g.Members, ledger.Member{ID: []byte(id), Points: n, Time: start + 5000})
	}
	piece.Groups = []ledger.Group{g}
	if a, _, err := store.Apply(t.Context(), piece); err != nil || a.Outcome != ledger.Applied {
		t.Fatalf("%v %v", a, err)
	}
	return environ
}

func TestEqualStandingsInTwoLayoutsAreEqual(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7})
	written(t, prefix+"-wide", map[string]int64{"ann": 5, "bob": 7}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	code, out, errs := clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-wide")
	if want := "Both ledgers stand at the same positions.\n\n1 window equal of 1.\n"; code != 0 || out != want || errs != "" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
}

func TestWhatDiffersIsCountedAndListed(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve\x1b": 1})
	written(t, prefix+"-wide", map[string]int64{"ann": 6, "bob": 7, "joe": 1}, "STANDINGS_PERIODS_WEEKLY_LAYOUT=wide")
	code, out, errs := clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-wide", "--list", "--limit", "2")
	if code != 1 || errs != "consumer: the standings differ\n" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, says := range []string{
		"global:weekly:2100-W01", "0 windows equal of 1.", "and 1 more: --limit",
		"ann     5 at 2100-01-04 00:00:05.", "6 at 2100-01-04 00:00:05.000", `eve\x1b`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(says), " ")) {
			t.Errorf("%q isn't in:\n%s", says, out)
		}
	}
	code, out, _ = clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-wide", "--list", "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	w := r.Windows[0]
	if r.Equal || r.Differ != 3 || w.OnlyA != 1 || w.OnlyB != 1 || w.Points != 1 || !w.Exact || len(r.Standings) != 3 ||
		r.Standings[0].A.Points != 5 || r.Standings[0].B.Points != 6 || r.Standings[1].B != nil {
		t.Errorf("%s", out)
	}
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.ZAdd(t.Context(), prefix+":{0}:global:weekly:2100-W01", redis.Z{Score: math.Inf(1), Member: "ann"}).Err(); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"--json", "--json=false"} {
		code, out, errs = clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-wide", "--list", form)
		if code != 1 || !strings.Contains(out, "+Inf") {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
	code, _, _ = clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-wide", "--board", "eu")
	if code != 0 {
		t.Errorf("exit code %d of a board that neither has", code)
	}
}

func TestALedgerThatIsElsewhereIsShown(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5})
	written(t, prefix+"-b", map[string]int64{"ann": 5})
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.HSet(t.Context(), prefix+"-b:{0}:ledger", "points/0", "7..9@00000000000000ff", "points/1", "3").Err(); err != nil {
		t.Fatal(err)
	}
	_, out, _ := clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-b")
	for _, says := range []string{"points/0 10 7..9@00000000000000ff", "points/1 nothing 3"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
			t.Errorf("%q isn't in:\n%s", says, out)
		}
	}
}

func TestACommandLineThatCannotBeIsRefused(t *testing.T) {
	prefix := testenv.Prefix(t)
	environ := written(t, prefix, map[string]int64{"ann": 5})
	for args, says := range map[string]string{
		"diff":                              "--with has to name the other prefix",
		"diff --with " + prefix:             "is the configured prefix itself",
		"diff --with a:b":                   `--with "a:b" isn't 1 to 64 letters`,
		"diff --with x --limit 0":           "--limit has to be 1 to 1000000",
		"diff --with x --period hourly":     "hourly",
		"diff --with x --board a/b":         "isn't a board's name",
		"diff --with x extra":               "takes 0 arguments",
		fmt.Sprint("diff --with ", "x{0}*"): "isn't 1 to 64 letters",
	} {
		code, _, errs := clitest.Execute(t, Command, environ, strings.Fields(args)...)
		if code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
	code, _, errs := clitest.Execute(t, Command, environ, "diff", "--with", prefix+"-none")
	if code != 1 || !strings.Contains(errs, "no standings under the prefix") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	code, _, errs = clitest.Execute(t, Command, append(environ, "STANDINGS_REDIS_ADDRESSES="+clitest.ClosedPort(t)), "diff", "--with", "x")
	if code != 1 || !strings.Contains(errs, "can't connect to Redis at ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
