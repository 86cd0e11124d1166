package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/clitest"
)

// aHalt returns a prefix of the test's own with a halted worker, and an address without a Kafka.
func aHalt(t *testing.T) (w *clitest.Standings, environ []string, kafka string) {
	t.Helper()
	w, kafka = clitest.StandingsOf(t, 0, 0), clitest.ClosedPort(t)
	w.Reports(t, 1, workers.Line{Owner: "me:1", State: workers.StateHalted, Reason: "gap", What: "events are gone", Remedy: "restore them"})
	return w, append(w.Environ, "STANDINGS_KAFKA_BROKERS="+kafka), kafka
}

func TestWatchingGoesOnUntilItIsInterrupted(t *testing.T) {
	w, environ, kafka := aHalt(t)
	lines, interrupt := clitest.Watched(t, Command, environ, "status")
	until := func(last string) (text string) {
		for !strings.Contains(text, last) && lines.Scan() {
			text += lines.Text() + "\n"
		}
		return text
	}
	first := until("can't connect to Kafka at " + kafka)
	w.Reports(t, 1, workers.Line{Owner: "me:1", State: workers.StateRunning})
	second := until("can't connect to Kafka at " + kafka)
	if !strings.HasPrefix(first, "group standings") || !strings.Contains(first, "points/1 halted (gap): events are gone") {
		t.Error(first)
	}
	if !strings.HasPrefix(second, "\ngroup standings") || !strings.Contains(second, "2 partitions, 2 running") {
		t.Error(second)
	}
	if code := interrupt(); code != 0 {
		t.Errorf("code %d", code)
	}
}

func TestWatchedStatusIsADocumentALineEachTimeItHasChanged(t *testing.T) {
	w, environ, _ := aHalt(t)
	lines, interrupt := clitest.Watched(t, Command, environ, "status", "--json")
	for _, want := range []string{workers.StateHalted, workers.StateRunning} {
		lines.Scan()
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || len(r.Partitions) != 2 || *r.Partitions[1].State != want || len(r.Problems) != 1 {
			t.Fatal(err, lines.Text())
		}
		w.Reports(t, 1, workers.Line{Owner: "me:1", State: workers.StateRunning})
	}
	if code := interrupt(); code != 0 {
		t.Errorf("code %d though a partition was halted", code)
	}
}

// stated returns a report of some partitions, of a given age.
func stated(t *testing.T, age time.Duration, what string, partitions int) *report {
	t.Helper()
	lines, positions := map[string]string{}, map[string]string{}
	for i := range partitions {
		positions[fmt.Sprint("points/", i)] = "5"
		lines[fmt.Sprint("points/", i)] = clitest.LineOf(workers.Line{Owner: "somewhere-far-away:1", State: "running", At: hour.Add(-age)})
	}
	lines["points/1"] = clitest.LineOf(workers.Line{Owner: "b:1", State: "halted", Reason: "gap", What: what, Remedy: strings.Repeat("restore them ", 10), At: hour.Add(-age)})
	r := reportOf(t, &ledger.State{Now: hour, Ledger: positions, Workers: lines}, nil)
	r.At = age.String()
	return r
}

func TestStatusThatOnlyGrewOlderIsNotWrittenAgain(t *testing.T) {
	looks := []*look{
		{report: stated(t, 0, "gone", 3)}, nil, {report: stated(t, time.Second, "gone", 3)}, {report: stated(t, 2*time.Second, "all gone", 3)},
	}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		changes := &cli.Changes{Program: &cli.Program{Stdout: &out}, JSON: asJSON}
		var written []int
		for i, l := range looks {
			before := out.Len()
			if err := writeChanged(changes, l); err != nil {
				t.Fatal(err)
			}
			if out.Len() > before {
				written = append(written, i)
			}
		}
		if !slices.Equal(written, []int{0, 3}) || asJSON && strings.Count(out.String(), "\n") != 2 {
			t.Errorf("JSON %t: written after %v:\n%s", asJSON, written, &out)
		}
	}
}

var styles = regexp.MustCompile(`\x1b\[[0-9]*m`)

func TestDrawnStatusFitsEveryTerminalWithWhatIsWrong(t *testing.T) {
	r := stated(t, 0, "events are\x1b[2J gone", 40)
	r.Problems = []string{strings.Repeat("can't connect to Kafka ", 10)}
	for width := 10; width < 200; width += 15 {
		for height := 1; height < 60; height += 1 + height/8 {
			d := &drawing{last: &look{at: time.Now(), report: r}, coloured: true}
			lines := d.lines(width, height)
			text := styles.ReplaceAllString(strings.Join(lines, "\n"), "")
			for line := range strings.SplitSeq(text, "\n") {
				if uniseg.StringWidth(line) > width || strings.Contains(line, "\x1b") {
					t.Fatalf("%dx%d: %q", width, height, line)
				}
			}
			wrong := strings.Contains(text, "points/1 halted (gap): events are\\x1b[2J gone")
			if ordinary := width >= 80 && height >= 24; len(lines) > height || ordinary && (!wrong || !strings.Contains(text, "PARTITION")) {
				t.Fatalf("%dx%d:\n%s", width, height, text)
			}
		}
	}
	d := &drawing{waited: 2500 * time.Millisecond}
	if got := d.lines(80, 24); len(got) != 1 || got[0] != "no reply for 2s" {
		t.Error(got)
	}
	d.last = &look{at: time.Now().Add(-5500 * time.Millisecond), report: r}
	if got := strings.Join(d.lines(80, 24), "\n"); !strings.Contains(got, "no reply for 2s: the following is 5s old") || strings.Contains(got, "\x1b") {
		t.Error(got)
	}
}

func TestHowOftenToLookHasLimits(t *testing.T) {
	for flags, want := range map[string]string{"--every 1s": "--every requires --watch", "--watch --every 99ms": "--every must be 100ms to 1h", "--watch --every 2h": "--every must be"} {
		code, _, stderr := clitest.Execute(t, Command, nil, append([]string{"status"}, strings.Fields(flags)...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d %s", flags, code, stderr)
		}
	}
}
