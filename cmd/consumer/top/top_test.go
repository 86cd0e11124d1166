package top

import (
	"encoding/json"
	"net"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// written is a prefix of the test's own with a reader.
type written struct {
	*clitest.Standings
	reader *Reader
}

func standingsOf(t *testing.T, origins ...int64) *written {
	t.Helper()
	s := clitest.StandingsOf(t, origins...)
	return newWritten(t, s)
}

func newWritten(t *testing.T, s *clitest.Standings) *written {
	t.Helper()
	r, err := newReader(s.Reader)
	require.NoError(t, err)
	return &written{s, r}
}

// execute runs top or rank.
func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := Command
	if args[0] == "rank" {
		command = RankCommand
	}
	return clitest.Execute(t, command, environ, args...)
}

var reportedAt = regexp.MustCompile(`"(reported_at|as_of)": "[^"]*"`)

// shows runs a command that must succeed, and compares its output.
func (w *written) shows(t *testing.T, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := execute(t, w.Environ, args...)
	stdout = reportedAt.ReplaceAllString(stdout, `"$1": "a moment ago"`)
	if code != 0 || stderr != "" || stdout != strings.TrimPrefix(want, "\n") {
		t.Errorf("%v: code %d, %s\n%s\nwant\n%s", args, code, stderr, stdout, want)
	}
}

func aBoard(t *testing.T) *written {
	t.Helper()
	w := standingsOf(t, 0, 0)
	w.Add(t, "global",
		clitest.Member("Kalobi", 1_234_567, "2100-03-09T08:15:30.123Z"), clitest.Member("Tanubo", 99, "2100-03-10T00:00:00.5Z"),
		clitest.Member("Nebude", 99, "2100-03-10T00:00:00.4Z"), clitest.Member("Viboli", -5, ""))
	return w
}

func TestTopIsATableWithAHeader(t *testing.T) {
	w := aBoard(t)
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER     POINTS  REACHED AT
   1  Kalobi  1,234,567  2100-03-09 08:15:30.12
   2  Nebude         99  2100-03-10 00:00:00.40
   3  Tanubo         99  2100-03-10 00:00:00.50
   4  Viboli         -5  2100-03-08 00:00:00.00
`, "top", "global", "weekly", "--window", "2100-W10")
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER  POINTS  REACHED AT
   3  Tanubo      99  2100-03-10 00:00:00.50
`, "top", "global", "weekly", "--window", "2100-W10", "--offset", "2", "--limit", "1")
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

no member has a rank above 4
`, "top", "global", "weekly", "--window", "2100-W10", "--offset", "4")
}

func TestTopAsJSONKeepsItsFields(t *testing.T) {
	w := aBoard(t)
	w.shows(t, `
{
  "board": "global",
  "period": "weekly",
  "window": "2100-W10",
  "start": "2100-03-08T00:00:00.000Z",
  "end": "2100-03-15T00:00:00.000Z",
  "time_zone": "UTC",
  "tick_ms": 10,
  "members": 4,
  "has_events": true,
  "state": "current",
  "as_of": "a moment ago",
  "revision": null,
  "lost": null,
  "refilling": [],
  "lag": 0,
  "behind_ms": 0,
  "reported_at": "a moment ago",
  "stalled_partitions": [],
  "not_begun": [],
  "incomplete": [],
  "standings": [
    {
      "rank": 1,
      "member": "Kalobi",
      "points": 1234567,
      "reached_at": "2100-03-09T08:15:30.120Z"
    }
  ]
}
`, "top", "global", "weekly", "--window", "2100-W10", "--limit", "1", "--json")
}

func TestAMemberIsShownWithThoseAroundThem(t *testing.T) {
	w := aBoard(t)
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER  POINTS  REACHED AT
   2  Nebude      99  2100-03-10 00:00:00.40
`, "rank", "global", "weekly", "Nebude", "--window", "2100-W10", "--around", "0")
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER     POINTS  REACHED AT
   1  Kalobi  1,234,567  2100-03-09 08:15:30.12
 > 2  Nebude         99  2100-03-10 00:00:00.40
   3  Tanubo         99  2100-03-10 00:00:00.50
`, "rank", "global", "weekly", "Nebude", "--window", "2100-W10", "--around", "1")
}

// A person sees a member among others. A program expects the member in the first standing.
func TestPeopleSeeTwoAboveAndBelow(t *testing.T) {
	w := inShards(t, 1)
	const ask = "rank global weekly m7 --window 2100-W10"
	for flags, want := range map[string]string{
		"": "m9 m8 m7 m6 m5", "--around 1": "m8 m7 m6", "--around 0": "m7", "--shadow": "m7", "--shadow --around 0": "m7",
		"--json": "m7", "--json --around 2": "m9 m8 m7 m6 m5", "--json --around 0": "m7", "--json --shadow": "m7",
	} {
		code, stdout, stderr := execute(t, w.Environ, strings.Fields(ask+" "+flags)...)
		if got := strings.Join(regexp.MustCompile(`\bm\d+\b`).FindAllString(stdout, -1), " "); code != 0 || got != want {
			t.Errorf("%s: code %d, shows %s, want %s\n%s%s", flags, code, got, want, stdout, stderr)
		}
	}
}

func TestAMemberWhoIsNotThereIsShownAsSuch(t *testing.T) {
	w := aBoard(t)
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER  POINTS  REACHED AT
   -  Nobody       -  -

no event of this member has been counted in this window
`, "rank", "global", "weekly", "Nobody", "--window", "2100-W10", "--around", "3")
	code, stdout, _ := execute(t, w.Environ, "rank", "global", "weekly", "Nobody", "--window", "2100-W10", "--json")
	var got report
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("code %d: %v in %s", code, err, stdout)
	}
	if want := []standing{{Member: "Nobody"}}; !reflect.DeepEqual(got.Standings, want) || got.Members != 4 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(stdout, `"rank": null`) || !strings.Contains(stdout, `"reached_at": null`) {
		t.Errorf("what isn't there is null: %s", stdout)
	}
}

// The error for a missing board or window names what exists.
func TestABoardOrWindowThatIsNotThereNamesThoseThatAre(t *testing.T) {
	w := aBoard(t)
	for _, board := range []string{"eu", "glob", "asia", "xxxxxxxxx", "n1", "n2", "n3"} {
		w.Add(t, board, clitest.Member("Kalobi", 1, ""))
	}
	const list = `; "consumer boards" lists them`
	for _, c := range []struct{ args, want string }{
		{"top globl weekly --window 2100-W10", "there is no board globl under the prefix %q; there are glob, global, asia, eu, n1, n2 and 2 more" + list},
		{"rank globl weekly Kalobi --window 2100-W10", "there is no board globl under the prefix %q; there are glob, global, asia, eu, n1, n2 and 2 more" + list},
		{"top global weekly --window 2100-W11", `no event has been counted in global weekly 2100-W11, or its retention is over; there is 2100-W10; "consumer boards global" lists them`},
		{"rank global monthly Kalobi --window 2100-03", `no event has been counted in global monthly 2100-03, or its retention is over; there is weekly 2100-W10; "consumer boards global" lists them`},
	} {
		want := "consumer: " + strings.ReplaceAll(c.want, "%q", `"`+w.reader.Config.Redis.Prefix+`"`) + "\n"
		code, stdout, stderr := execute(t, w.Environ, strings.Fields(c.args)...)
		if code != 1 || stderr != want || !strings.Contains(stdout, "  0 members\n") {
			t.Errorf("%s: code %d\n%s%s\nwant\n%s", c.args, code, stdout, stderr, want)
		}
		code, stdout, _ = execute(t, w.Environ, append(strings.Fields(c.args), "--json")...)
		if code != 1 || !strings.Contains(stdout, `"state": "empty"`) {
			t.Errorf("%s --json: code %d %s", c.args, code, stdout)
		}
	}

	t.Log("and of a prefix that no consumer has written to yet there is nothing to name")
	prefix := testenv.Prefix(t)
	w.Environ[1] = "STANDINGS_REDIS_PREFIX=" + prefix
	want := "consumer: Redis has no keys under the prefix \"" + prefix + "\": no consumer has started yet, or Redis was lost\n"
	for _, args := range []string{"top global monthly", "rank global monthly Kalobi"} {
		if code, _, stderr := execute(t, w.Environ, strings.Fields(args)...); code != 1 || stderr != want {
			t.Errorf("%s: code %d %s", args, code, stderr)
		}
	}
}

func TestAnIncompleteWindowSaysSo(t *testing.T) {
	began := time.Date(2100, 3, 8, 0, 0, 1, 0, time.UTC).UnixMilli()
	w := standingsOf(t, 0, began, began)
	w.Add(t, "eu", clitest.Member("Kalobi", 1, "2100-03-09T00:00:00Z"))
	w.shows(t, `
eu weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  1 member

RANK  MEMBER  POINTS  REACHED AT
   1  Kalobi       1  2100-03-09 00:00:00.00

incomplete: events of this window may be missing, from before the log began or the period was added, or from a gap in the log, of points/1, points/2
`, "top", "eu", "weekly", "--window", "2100-W10")
	_, stdout, _ := execute(t, w.Environ, "top", "eu", "weekly", "--window", "2100-W10", "--json")
	if !strings.Contains(stdout, "\"incomplete\": [\n    \"points/1\",\n    \"points/2\"\n  ]") {
		t.Error(stdout)
	}
}

func TestWhatAMemberIsCalledCanNotWriteToTheTerminal(t *testing.T) {
	w := standingsOf(t, 0)
	evil := "\x1b[2J\x07\u202egnp.\u0000\n"
	w.Add(t, "global", clitest.Member(evil, 7, "2100-03-09T00:00:00Z"),
		clitest.Member(`back\slash`, 6, "2100-03-09T00:00:00Z"), clitest.Member("日本語", 5, "2100-03-09T00:00:00Z"), clitest.Member(" a b ", 4, "2100-03-09T00:00:00Z"))
	w.shows(t, `
global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members

RANK  MEMBER                         POINTS  REACHED AT
   1  \x1b[2J\x07\u202egnp.\x00\x0a       7  2100-03-09 00:00:00.00
   2  back\\slash                         6  2100-03-09 00:00:00.00
   3  日本語                              5  2100-03-09 00:00:00.00
   4  \x20a b\x20                         4  2100-03-09 00:00:00.00
`, "top", "global", "weekly", "--window", "2100-W10")
	_, stdout, _ := execute(t, w.Environ, "top", "global", "weekly", "--window", "2100-W10", "--json")
	var got report
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Standings[0].Member != evil {
		t.Errorf("in JSON an id is as it is: %v, %q", err, stdout)
	}
}

func TestAWrongBoardPeriodOrWindowIsOneLineAndTwo(t *testing.T) {
	w := standingsOf(t, 0)
	environ := append(w.Environ, "STANDINGS_BOARDS=global,eu")
	for _, c := range []struct{ args, want string }{
		{"top a/b weekly", "is not a board name"},
		{"top asia weekly", "boards is global, eu"},
		{"top eu wekly", `unknown period "wekly": use daily, weekly,`},
		{"top eu daily", "period daily is not enabled (periods.daily.enabled); use weekly, monthly, yearly"},
		{"top eu weekly --window 2100-03", "use the form 2026-W47, current or previous"},
		{"top eu weekly --limit 0", "--limit must be 1 to 1000000, and --offset at least 0"},
		{"top eu weekly --offset -1", "--offset"},
		{"rank eu weekly x --around -1", "--around"},
		{"rank eu weekly " + strings.Repeat("x", 257), "256 bytes, not 257"},
		{"rank eu weekly", "3 arguments, not 2"},
		{"top eu weekly --shards", "--shards requires --json"},
		{"rank eu weekly x --shards", "--shards requires --json"},
	} {
		code, stdout, stderr := execute(t, environ, strings.Fields(c.args)...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}

func TestARedisThatIsNotThereIsOneLineAndOne(t *testing.T) {
	closed, silent := clitest.ClosedPort(t), clitest.SilentPort(t)
	for address, want := range map[string]string{
		closed: "can't connect to Redis at " + closed,
		silent: "no answer from Redis at " + silent + " within redis.timeout, 100ms",
	} {
		for _, args := range []string{"top global weekly", "rank global weekly x"} {
			environ := []string{"STANDINGS_REDIS_ADDRESSES=" + address}
			if address == silent { // the other address refuses connections at once
				environ = append(environ, "STANDINGS_REDIS_TIMEOUT=100ms")
			}
			code, stdout, stderr := execute(t, environ, strings.Fields(args)...)
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%s at %s: code %d, %s%s", args, address, code, stdout, stderr)
			}
		}
	}
}

func TestAnotherSchemaIsToldWithoutTheCluster(t *testing.T) {
	w := aBoard(t)
	code, _, stderr := execute(t, append(w.Environ, "STANDINGS_WEEK_START=sunday"), "top", "global", "monthly")
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "week_start is monday in Redis, sunday here") || strings.Contains(stderr, "Kafka cluster") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// The server is not a Redis, or is full.
func TestAnErrorOfRedisNamesItsCause(t *testing.T) {
	// A Kafka reads the text of Redis's protocol as a request of 700 MB, and closes the connection.
	kafka, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer kafka.Close() //nolint:errcheck // nothing is in flight any more
	go func() {
		for {
			conn, err := kafka.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_ = conn.Close()
		}
	}()
	code, _, stderr := execute(t, []string{"STANDINGS_REDIS_ADDRESSES=" + kafka.Addr().String()}, "top", "global", "weekly")
	if want := "closes the connection without a reply: make sure that it is Redis, not Kafka (redis.addresses)"; code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
		t.Errorf("code %d: %s", code, stderr)
	}
	cfg := config.Defaults()
	full := app.ExplainRedis(t.Context(), answerError("OOM command not allowed when used memory > 'maxmemory'."), cfg)
	if want := "is full: it is at its maxmemory and refuses writes. Raise it (CONFIG SET maxmemory), or remove unused boards (consumer drop)"; !strings.HasSuffix(full.Error(), want) {
		t.Error(full)
	}
}

// answerError is an error returned by a server.
type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}
