package produce

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/test/clitest"
)

func fileOf(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestACheckShowsWhatWouldBecomeOfEachLine(t *testing.T) {
	letter := func(rest string) string {
		return `{"dead_letter":{"topic":"points","partition":3,"offset":480},"time":"2026-11-21T08:15:30.123Z",` + rest + `}`
	}
	file := fileOf(t,
		`{"user_id":"u42","points":25,"board":["eu","global"]}`,
		``,
		`{"user_id":"u42","points":"25"}`,
		`null`,
		letter(`"value":{"user_id":"u\u001b[2J","points":1025}`),
		letter(`"value_text":"nothing"`),
		letter(`"key":7`),
		`{"user_id":"u42","points":1,"board":"asia"}`,
		`{"user_id":"u42","points":25,"occurred_at":"2020-11-21T08:15:30.123Z"}`,
	)
	// Neither server is contacted: both ports are closed.
	environ := []string{"STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t), "STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t), "STANDINGS_BOARDS=eu,global", "STANDINGS_LATENESS=1d"}
	code, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--file", file, "--check")
	for _, want := range []string{
		"     3  invalid        points at byte 26 is a number in quotes: \"25\"\n",
		"     4  malformed      the value is not an object but null\n",
		"     5  counted        1,025 points of u\\x1b[2J on global: weekly 2026-W47, monthly 2026-11, yearly 2026\n",
		"     6  malformed      not JSON at byte 1: ",
		"     7  refused        line 7 is a dead letter that cannot be published: key: wrong JSON type\n",
		"     8  unknown_board  board at byte ",
		"     9  late           no window takes it: its time is 2020-11-21T08:15:30.123Z, and its windows ended more than their lateness ago\n",
		"\n9 lines: 2 would be counted, 1 late, 4 dead letters; 1 would be refused by produce\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q isn't in\n%s", want, stdout)
		}
	}
	if want := "consumer: not every line would count: 4 lines would be dead letters, and 1 refused\n"; code != 1 || stderr != want {
		t.Errorf("code %d %s", code, stderr)
	}
	code, stdout, _ = clitest.Execute(t, Command, environ, "produce", "--file", file, "--check", "--json")
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 || len(r.Lines) != 8 || r.DeadLetters != 4 || r.Refused != 1 {
		t.Fatalf("code %d %v %s", code, err, stdout)
	}
	if l := r.Lines[1]; l.Line != 3 || l.Result != lineDeadLetter || l.Reason == nil || *l.Reason != "invalid" || l.Member != nil {
		t.Errorf("%+v", l)
	}
	if l := r.Lines[3]; l.Result != lineCounted || *l.Member != "u\x1b[2J" || *l.Points != 1025 || *l.At != "2026-11-21T08:15:30.123Z" || len(l.Windows) != 3 || l.Boards[0] != "global" {
		t.Errorf("%+v", l)
	}
	if code, stdout, stderr = clitest.Execute(t, Command, environ, "produce", "--file", fileOf(t, `{"user_id":7,"points":1}`), "--check"); code != 0 || stderr != "" || !strings.Contains(stdout, "1 points of 7 on global: weekly") {
		t.Errorf("code %d %s%s", code, stdout, stderr)
	}
}

func TestACheckFindsTheReasonsThatAConsumerWould(t *testing.T) {
	g, err := sample.New(sample.Options{Bad: 0.5, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	var reasons []string
	for len(reasons) < 3000 {
		e, _ := g.Next(nil)
		if len(bytes.TrimSpace(e.Value)) == 0 {
			continue // blank lines are skipped
		}
		reasons = append(reasons, e.Reason)
		file.Write(append(e.Value, '\n'))
	}
	path := fileOf(t, file.String())
	_, stdout, stderr := clitest.Execute(t, Command, nil, "produce", "--file", path, "--check", "--json")
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Lines) != len(reasons) {
		t.Fatalf("%v: %d lines %s", err, len(r.Lines), stderr)
	}
	for i, l := range r.Lines {
		reason := ""
		if l.Reason != nil {
			reason = *l.Reason
		}
		if reason != reasons[i] || (l.Result == lineCounted) != (reason == "") {
			t.Fatalf("line %d: %+v, want %q", i+1, l, reasons[i])
		}
	}
}

func TestACheckShowsWhatRepeatsALineBefore(t *testing.T) {
	file := fileOf(t,
		`{"event_id":"a","user_id":"u1","points":"1"}`,
		`{"event_id":"a","user_id":"u1","points":1}`,
		`{"event_id":"a","user_id":"u2","points":1}`,
		``,
		`{"event_id":"a","user_id":"u1","points":2}`,
		`{"user_id":"u1","points":2}`,
		`{"event_id":"a","user_id":"u2","points":1}`,
		`{"user_id":"u1","points":2}`,
	)
	environ := []string{"STANDINGS_KAFKA_BROKERS=" + clitest.ClosedPort(t), "STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t), "STANDINGS_EVENT_DUPLICATES=2"}
	_, stdout, stderr := clitest.Execute(t, Command, environ, "produce", "--file", file, "--check")
	for _, want := range []string{
		"     1  invalid        ", "     2  counted        ", "     3  counted        ",
		"     5  duplicate      line 2 has the same event_id and user_id, so this line does not count if both go to one partition\n",
		"     6  counted        ", "     7  counted        ", "     8  counted        ",
		"\n8 lines: 5 would be counted, 0 late, 1 dead letters, 1 duplicates\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q isn't in\n%s%s", want, stdout, stderr)
		}
	}
	_, stdout, _ = clitest.Execute(t, Command, environ, "produce", "--file", file, "--check", "--json")
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Duplicates != 1 || r.Counted != 5 {
		t.Errorf("%v: %+v", err, r)
	}
	if _, stdout, _ = clitest.Execute(t, Command, environ[:2], "produce", "--file", file, "--check"); strings.Contains(stdout, "duplicate") {
		t.Errorf("it compares without event.duplicates:\n%s", stdout)
	}
}
