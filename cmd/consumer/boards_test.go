package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/boards"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// listing writes windows of boards in the form in which a consumer lists them.
type listing struct {
	c       *redis.Client
	tag     string
	environ []string
}

func newListing(t *testing.T) *listing {
	t.Helper()
	prefix := testenv.Prefix(t)
	c := redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return &listing{c: c, tag: prefix + ":{0}:", environ: []string{
		"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=" + prefix, "STANDINGS_TIME_ZONE=Europe/Berlin",
	}}
}

// add lists a window [start, end) with a number of members; it expires in 2200.
func (l *listing) add(t *testing.T, name string, start, end string, members int) {
	t.Helper()
	l.addUntil(t, name, start, end, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), members)
}

func (l *listing) addUntil(t *testing.T, name string, start, end string, until time.Time, members int) {
	t.Helper()
	ms := func(text string) int64 {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	pipe := l.c.Pipeline()
	pipe.HSet(t.Context(), l.tag+"windows", name, fmt.Sprintf(`{"end":%d,"expires":%d,"start":%d}`, ms(end), until.UnixMilli(), ms(start)))
	if members > 0 {
		all := make([]redis.Z, members)
		for i := range all {
			all[i] = redis.Z{Score: 1, Member: fmt.Sprint("m", i)}
		}
		pipe.ZAdd(t.Context(), l.tag+name, all...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (l *listing) lists(t *testing.T, want string, args ...string) {
	t.Helper()
	code, out, errs := execute(t, l.environ, append([]string{"boards"}, args...)...)
	if code != 0 || errs != "" || out != strings.TrimPrefix(want, "\n") {
		t.Errorf("%v: code %d %s\n%s\nwant\n%s", args, code, errs, out, want)
	}
}

func someBoards(t *testing.T) *listing {
	t.Helper()
	l := newListing(t)
	l.add(t, "global:weekly:2100-W10", "2100-03-08", "2100-03-15", 3)
	l.add(t, "global:weekly:2100-W09", "2100-03-01", "2100-03-08", 1234)
	l.add(t, "global:yearly:2100", "2100-01-01", "2101-01-01", 1235)
	l.add(t, "global:monthly:2100-03", "2100-03-01", "2100-04-01", 0)
	l.add(t, "eu1:weekly:2100-W10", "2100-03-08", "2100-03-15", 1)
	l.add(t, "eu2:weekly:2100-W10", "2100-03-08", "2100-03-15", 1)
	l.addUntil(t, "old:weekly:2020-W10", "2020-03-02", "2020-03-09", time.Now().Add(-time.Hour), 1)
	return l
}

func TestBoardsAreListedWithTheirWindows(t *testing.T) {
	l := someBoards(t)
	l.lists(t, `
BOARD   PERIOD   WINDOW    START             END               MEMBERS
eu1     weekly   2100-W10  2100-03-08 01:00  2100-03-15 01:00        1
eu2     weekly   2100-W10  2100-03-08 01:00  2100-03-15 01:00        1
global  weekly   2100-W09  2100-03-01 01:00  2100-03-08 01:00    1,234
global  weekly   2100-W10  2100-03-08 01:00  2100-03-15 01:00        3
global  monthly  2100-03   2100-03-01 01:00  2100-04-01 02:00     gone
global  yearly   2100      2100-01-01 01:00  2101-01-01 01:00    1,235

3 boards, 6 windows
`)
	l.lists(t, `
BOARD  PERIOD  WINDOW    START             END               MEMBERS
eu1    weekly  2100-W10  2100-03-08 01:00  2100-03-15 01:00        1

2 boards, 2 windows, 1 of them listed: name a board, or some ('eu*'), or --limit 0 for all
`, "eu*", "--limit", "1")
	empty := newListing(t)
	prefix, _, _ := strings.Cut(empty.tag, ":")
	empty.lists(t, "No board has a window under the prefix "+prefix+": no event has been counted there.\n")
	empty.add(t, "a\x1b[2J:weekly:2100-W10", "2100-03-08", "2100-03-15", 1)
	if _, out, _ := execute(t, empty.environ, "boards"); strings.Contains(out, "\x1b") || !strings.Contains(out, `a\x1b[2J  weekly`) {
		t.Error(out)
	}
}

func TestBoardsAsJSON(t *testing.T) {
	l := someBoards(t)
	code, out, errs := execute(t, l.environ, "boards", "--json", "--limit", "5")
	var r struct {
		Boards      int
		WindowCount int `json:"window_count"`
		Windows     []struct {
			Board, Period, Window, Start string
			Members                      *int64
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Boards != 3 || r.WindowCount != 6 || len(r.Windows) != 5 {
		t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
	}
	if w := r.Windows[2]; w.Board != "global" || w.Period != "weekly" || w.Window != "2100-W09" || w.Start != "2100-03-01T00:00:00.000Z" || w.Members == nil || *w.Members != 1234 {
		t.Errorf("%+v", w)
	}
	if r.Windows[4].Members != nil || !strings.Contains(out, `"members": null`) {
		t.Errorf("a window whose key is gone: %s", out)
	}
	// A list is never null.
	if _, out, _ = execute(t, newListing(t).environ, "boards", "--json"); !strings.Contains(out, `"windows": []`) {
		t.Error(out)
	}
}

func TestABoardThatIsNotListedNamesTheNearest(t *testing.T) {
	l := someBoards(t)
	for pattern, want := range map[string]string{"globl": "there are global, eu1, eu2;", "eu3*": "there are eu1, eu2, global;"} {
		code, out, errs := execute(t, l.environ, "boards", pattern)
		if code != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "there is no board "+pattern) || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d %s%s", pattern, code, out, errs)
		}
	}
	for args, want := range map[string]string{"a/b": "is not a board name", "eu1 eu2": "consumer boards takes at most one board, not", "eu1 --limit -1": "--limit must be at least 0"} {
		if code, _, errs := execute(t, l.environ, append([]string{"boards"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d %s", args, code, errs)
		}
	}
}

// The window's first event was counted between the read that found nothing and the read of the listing.
func TestAWindowThatHasBegunSinceItWasReadIsToBeReadAgain(t *testing.T) {
	l := someBoards(t)
	loaded, err := config.Load("", l.environ)
	if err != nil {
		t.Fatal(err)
	}
	r, err := app.OpenReader(t.Context(), loaded.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = boards.NoWindow(t.Context(), r, "global", periods.Window{Period: "weekly", Name: "2100-W10"})
	if want := "global weekly 2100-W10 was created meanwhile: run the command again"; err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestAWindowOfSeveralShardsIsListedOnce(t *testing.T) {
	w := clitest.StandingsIn(t, 5, 0)
	var members []ledger.Member
	for i := range 100 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), 1, ""))
	}
	w.Add(t, "global", members...)
	w.Add(t, "eu", members[:1]...)
	w.Add(t, "us", members...)
	w.Reader.Client.Del(t.Context(), w.Shards[3].Keys().Listed("us:weekly:"+clitest.Window))
	l := &listing{environ: w.Environ}
	l.lists(t, `
BOARD   PERIOD  WINDOW    START             END               MEMBERS
eu      weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00        1
global  weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00      100
us      weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00     gone

3 boards, 3 windows
`)
}
