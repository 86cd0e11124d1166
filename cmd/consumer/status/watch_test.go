package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/terminal"
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

func TestOnlyTheAgeOfAStatusIsNoChange(t *testing.T) {
	key := func(age time.Duration, what string) string {
		text, err := json.Marshal(stated(t, age, what, 3).whatMatters())
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, key(0, "gone"), key(time.Second, "gone"))
	require.NotEqual(t, key(0, "gone"), key(0, "all gone"))
}

func TestDrawnStatusFitsEveryTerminalWithWhatIsWrong(t *testing.T) {
	r := stated(t, 0, "events are\x1b[2J gone", 40)
	r.Problems = []string{strings.Repeat("can't connect to Kafka ", 10)}
	for width := 10; width < 200; width += 15 {
		for height := 1; height < 60; height += 1 + height/8 {
			all := lines(&cli.Shown[report]{Last: r, At: time.Now(), Coloured: true}, width, height)
			text := terminal.Unstyled(strings.Join(all, "\n"))
			for line := range strings.SplitSeq(text, "\n") {
				if uniseg.StringWidth(line) > width || strings.Contains(line, "\x1b") {
					t.Fatalf("%dx%d: %q", width, height, line)
				}
			}
			wrong := strings.Contains(text, "points/1 halted (gap): events are\\x1b[2J gone")
			if ordinary := width >= 80 && height >= 24; len(all) > height || ordinary && (!wrong || !strings.Contains(text, "PARTITION")) {
				t.Fatalf("%dx%d:\n%s", width, height, text)
			}
		}
	}
}
