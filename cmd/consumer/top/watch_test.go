package top

import (
	"encoding/json"
	"fmt"
	"reflect"
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
	"github.com/standings/standings/internal/terminal"
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

// boardAt returns a board, with the time since the workers' reports and their lag in records.
func boardAt(ago time.Duration, lag int64, members ...string) *board {
	b := &board{View: reading.View{Board: ranking.Board{Name: "global", Window: periods.Window{Period: periods.Weekly, Name: "2100-W10", Start: 4_108_060_800_000, End: 4_108_665_600_000}, Tick: 10 * time.Millisecond, Listed: true}}}
	b.Beside.Now = time.UnixMilli(4_108_665_600_000).Add(-90 * time.Second)
	b.ReportedAt, b.Lag = b.Beside.Now.Add(-ago), workers.Lag{Known: true, Records: lag}
	for i, m := range members {
		b.Standings = append(b.Standings, ranking.Standing{Rank: int64(i) + 1, Member: m, Points: 5})
	}
	return b
}

func TestOnlyTheTimeOfTheReportsIsNoChangeNorInTextASmallLag(t *testing.T) {
	was, behind := boardAt(0, 0, "a"), boardAt(0, 1, "a")
	behind.Behind = time.Minute
	for i, c := range []struct {
		now        *board
		text, json bool // whether it is a change
	}{
		{boardAt(time.Second, 0, "a"), false, false}, {boardAt(0, 3, "a"), false, true}, {boardAt(0, 0, "b"), true, true}, {behind, true, true},
	} {
		changed := func(asJSON bool) bool {
			return !reflect.DeepEqual(whatMatters(reportOf(was, false), asJSON), whatMatters(reportOf(c.now, false), asJSON))
		}
		if changed(false) != c.text || changed(true) != c.json {
			t.Errorf("%d: %t as text, %t as JSON", i, changed(false), changed(true))
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
	if ends(&ranking.SchemaError{Found: ranking.LeftMark(ledger.Shards(3))}) {
		t.Error("the shards that a reshard has left end it")
	}
}

// drawn returns the screen of a board of 10 members with every kind of note.
func drawn(width, height int) []string {
	var members []string
	for i := range 10 {
		members = append(members, fmt.Sprint(strings.Repeat("日本語\x1b[2J", i), i))
	}
	b := boardAt(0, 9, members...)
	b.Behind, b.Incomplete = time.Hour, []string{"points/1"}
	b.Halted = []workers.Reported{{Field: "points/0", Line: workers.Line{State: "halted", Reason: "gap", What: "events are\x1b gone", Remedy: strings.Repeat("restore them ", 20)}}}
	return (&drawing{}).lines(&cli.Shown[board]{Last: b, At: time.Now(), Coloured: true}, width, height)
}

func TestADrawnBoardFitsEveryTerminal(t *testing.T) {
	for width := 5; width < 150; width += 12 {
		for height := 1; height < 40; height += 1 + height/8 {
			lines := drawn(width, height)
			if len(lines) > height {
				t.Fatalf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, line := range lines {
				if text := terminal.Unstyled(line); uniseg.StringWidth(text) > width || strings.ContainsAny(text, "\x1b\n") {
					t.Fatalf("%dx%d: %q", width, height, line)
				}
			}
		}
	}
}

func TestAnOrdinaryTerminalShowsRowsAndWhatIsMissing(t *testing.T) {
	text := terminal.Unstyled(strings.Join(drawn(80, 24), "\n"))
	for _, want := range []string{"\nincomplete, ends in 1m2", "  10  ", "incomplete: events of this window", "catching up: 9 records, 1h0m behind", "points/0 is halted (gap): events are\\x1b gone", "\n  to do: restore them"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// Notes do not displace the rows.
	if text := strings.Join(drawn(80, 8), "\n"); !strings.Contains(text, "\n   3  ") || !strings.Contains(text, " more lines") {
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
