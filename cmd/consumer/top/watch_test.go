package top

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/test/clitest"
)

func TestAWatchedBoardIsADocumentALineEachTimeItHasChanged(t *testing.T) {
	b := aBoard(t)
	lines, interrupt := clitest.Watched(t, Command, b.Environ, "top", "global", "weekly", "--window", clitest.Window, "--json")
	for look, want := range []int64{99, 100, 101} {
		if look > 0 {
			b.Add(t, "global", clitest.Member("Tanubo", 1, "2100-03-11T00:00:00Z"))
		}
		lines.Scan()
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err, lines.Text())
		}
		for _, st := range r.Standings {
			if st.Member == "Tanubo" && *st.Points != want {
				t.Errorf("document %d has %d points, want %d", look, *st.Points, want)
			}
		}
	}
	if code := interrupt(); code != 0 {
		t.Errorf("code %d", code)
	}
}

func TestAWatchedBoardIsWrittenAgainAsTextAfterAnEmptyLine(t *testing.T) {
	b := aBoard(t)
	lines, interrupt := clitest.Watched(t, Command, b.Environ, "top", "global", "weekly", "--window", clitest.Window, "--limit", "1")
	until := func(last string) (text string) {
		for !strings.HasSuffix(text, last+"\n") && lines.Scan() {
			text += lines.Text() + "\n"
		}
		return text
	}
	first := until("   1  Kalobi  1,234,567  2100-03-09 08:15:30.12")
	b.Add(t, "global", clitest.Member("Kalobi", 1, "2100-03-11T00:00:00Z"))
	second := until("   1  Kalobi  1,234,568  2100-03-11 00:00:00.00")
	if !strings.HasPrefix(first, "global weekly 2100-W10 ") || !strings.HasPrefix(second, "\nglobal weekly 2100-W10 ") || strings.Contains(first+second, "begins in") {
		t.Errorf("%s---\n%s", first, second)
	}
	if code := interrupt(); code != 0 {
		t.Errorf("code %d", code)
	}
}

// lookAt returns a reading that found a board, with the time since the workers' reports and their lag in
// records.
func lookAt(ago time.Duration, lag int64, members ...string) *look {
	b := &board{View: reading.View{Board: ranking.Board{Name: "global", Window: periods.Window{Period: periods.Weekly, Name: "2100-W10", Start: 4_108_060_800_000, End: 4_108_665_600_000}, Tick: 10 * time.Millisecond, Listed: true}}}
	b.Beside.Now = time.UnixMilli(4_108_665_600_000).Add(-90 * time.Second)
	b.ReportedAt, b.Lag = b.Beside.Now.Add(-ago), workers.Lag{Known: true, Records: lag}
	for i, m := range members {
		b.Standings = append(b.Standings, ranking.Standing{Rank: int64(i) + 1, Member: m, Points: 5})
	}
	return &look{at: time.Now(), board: b}
}

func TestWhatChangesByTimeAloneIsNotWrittenAgain(t *testing.T) {
	away := &look{err: errors.New("can't connect\n\x1b")}
	other := lookAt(0, 0, "b")
	other.board.Behind, other.board.Lag.Records = time.Minute, 1
	looks := []*look{
		lookAt(0, 0, "a"), nil, lookAt(time.Second, 0, "a"), lookAt(0, 3, "a"), away, away, nil, lookAt(0, 3, "a"), lookAt(0, 3, "b"), other,
	}
	for name, c := range map[string]struct {
		json    bool
		written string
	}{"text": {false, "0 8 9"}, "json": {true, "0 3 8 9"}} {
		var out, errs bytes.Buffer
		w := &writer{changes: cli.Changes{Program: &cli.Program{Stdout: &out, Stderr: &errs}, JSON: c.json}, page: &pageFlags{asJSON: c.json}, zone: "UTC"}
		var written []string
		for i, l := range looks {
			before := out.Len()
			if err := w.show(l, 0); err != nil {
				t.Fatal(err)
			}
			if out.Len() > before {
				written = append(written, fmt.Sprint(i))
			}
		}
		if got := strings.Join(written, " "); got != c.written {
			t.Errorf("%s: written after %s, want %s\n%s", name, got, c.written, &out)
		}
		if want := "consumer: can't connect \\x1b\nconsumer: the board can be read again\n"; errs.String() != want {
			t.Errorf("%s: %q", name, &errs)
		}
	}
}

func TestWhatNothingWouldChangeEndsWatching(t *testing.T) {
	b := aBoard(t)
	for args, want := range map[string]struct {
		code int
		said string
	}{
		"--window 2100-03":   {2, "use the form 2026-W47, current or previous"},
		"--every 50ms":       {2, "--every must be 100ms to 1h"},
		"--every 61m":        {2, "--every must be 100ms to 1h"},
		"--every 5":          {2, "must be a duration"},
		"--limit 0":          {2, "--limit must be 1 to 1000000, and --offset at least 0"},
		"--config /nowhere":  {2, "/nowhere"},
		"week_start: sunday": {1, "week_start is monday in Redis, sunday here"},
	} {
		environ, flags := b.Environ, strings.Fields(args)
		if strings.HasPrefix(args, "week") {
			environ, flags = append(environ, "STANDINGS_WEEK_START=sunday"), nil
		}
		code, stdout, stderr := execute(t, environ, append([]string{"top", "global", "weekly", "--watch"}, flags...)...)
		if code != want.code || stdout != "" || !strings.Contains(stderr, want.said) {
			t.Errorf("%s: code %d %s%s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := execute(t, b.Environ, "top", "global", "weekly", "--every", "1s"); code != 2 || !strings.Contains(stderr, "--every requires --watch") {
		t.Errorf("code %d %s", code, stderr)
	}
	left := &look{err: &ranking.SchemaError{Found: ranking.LeftMark(ledger.Shards(3))}}
	if left.ends() {
		t.Error("the shards that a reshard has left end it")
	}
}

var styles = regexp.MustCompile(`\x1b\[[0-9]*m`)

// drawn returns the drawing of a board of 10 members with every kind of note.
func drawn() *drawing {
	var members []string
	for i := range 10 {
		members = append(members, fmt.Sprint(strings.Repeat("日本語\x1b[2J", i), i))
	}
	l := lookAt(0, 9, members...)
	l.board.Behind, l.board.Incomplete = time.Hour, []string{"points/1"}
	l.board.Halted = []workers.Reported{{Field: "points/0", Line: workers.Line{State: "halted", Reason: "gap", What: "events are\x1b gone", Remedy: strings.Repeat("restore them ", 20)}}}
	d := &drawing{title: "global weekly", page: &pageFlags{}, zone: time.UTC, coloured: true}
	d.take(l, 0)
	return d
}

func TestADrawnBoardFitsEveryTerminal(t *testing.T) {
	for _, trouble := range []error{nil, errors.New(strings.Repeat("can't connect\x1b[2J ", 20))} {
		d := drawn()
		if trouble != nil {
			d.take(&look{err: trouble}, 0)
		}
		for width := 5; width < 150; width += 12 {
			for height := 1; height < 40; height += 1 + height/8 {
				lines := d.lines(width, height)
				if len(lines) > height {
					t.Fatalf("%dx%d: %d lines", width, height, len(lines))
				}
				for _, line := range lines {
					if text := styles.ReplaceAllString(line, ""); uniseg.StringWidth(text) > width || strings.ContainsAny(text, "\x1b\n") {
						t.Fatalf("%dx%d: %q", width, height, line)
					}
				}
			}
		}
	}
}

func TestAnOrdinaryTerminalShowsRowsAndWhatIsMissing(t *testing.T) {
	d := drawn()
	text := styles.ReplaceAllString(strings.Join(d.lines(80, 24), "\n"), "")
	for _, want := range []string{"\nbehind, ends in 1m2", "  10  ", "incomplete: events of this window", "catching up: 9 records, 1h0m behind", "points/0 is halted (gap): events are\\x1b gone", "\n  to do: restore them"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	d.take(nil, 2500*time.Millisecond)
	if text := strings.Join(d.lines(80, 24), "\n"); !strings.Contains(text, "no answer from Redis for 2s") || !strings.Contains(text, "was behind 0s ago") {
		t.Error(text)
	}
	// Notes do not displace the rows.
	if text := strings.Join(d.lines(80, 8), "\n"); !strings.Contains(text, "\n   3  ") || !strings.Contains(text, " more lines") {
		t.Error(text)
	}
}

func TestTheTimeLeftOfAWindow(t *testing.T) {
	w := periods.Window{Start: 1_000_000, End: 2_000_000}
	for at, want := range map[int64]string{
		1_000_000: ", ends in 16m40s", 1_990_500: ", ends in 9s", 1_999_900: ", ends in 0s", 2_000_000: ", ended 0s ago", 200_000_000: ", ended 2d7h ago", 940_000: ", begins in 1m0s",
	} {
		if got := timeLeft(w, time.UnixMilli(at)); got != want {
			t.Errorf("%d: %q, want %q", at, got, want)
		}
	}
	if got := timeLeft(periods.Window{End: periods.MaxTime}, time.UnixMilli(5)); got != "" {
		t.Errorf("all of time: %q", got)
	}
}
