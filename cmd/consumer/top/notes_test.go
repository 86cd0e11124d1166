package top

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/test/clitest"
)

// states reads the board with both commands, as text and as JSON, and verifies that all agree.
func (w *written) states(t *testing.T, wantCode int, state string, said ...string) report {
	t.Helper()
	var r report
	for _, args := range [][]string{{"top", "global", "weekly"}, {"rank", "global", "weekly", "Kalobi"}, {"rank", "global", "weekly", "Kalobi", "--around", "3"}} {
		args = append(args, "--window", clitest.Window)
		code, stdout, stderr := execute(t, w.Environ, args...)
		for _, want := range said {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%v doesn't say %q:\n%s%s", args, want, stdout, stderr)
			}
		}
		if code != wantCode || (stderr != "") != (code != 0) {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
		if state != reading.StateEmpty && strings.Contains(stdout, "has been counted in this window") {
			t.Errorf("%v: %s", args, stdout)
		}
		code, stdout, _ = execute(t, w.Environ, append(args, "--json")...)
		r = report{}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != wantCode || r.State != state {
			t.Errorf("%v --json: code %d, %v, state %q, want %q", args, code, err, r.State, state)
		}
	}
	return r
}

func (w *written) del(t *testing.T, name string) {
	t.Helper()
	if n, err := w.reader.Client.Del(t.Context(), w.reader.Config.Redis.Prefix+":{0}:"+name).Result(); err != nil || n != 1 {
		t.Fatal(n, err)
	}
}

func TestALostBoardIsAnErrorWithWhatToDo(t *testing.T) {
	const rebuild = "rebuild the boards from the log (consumer rebuild), or restore a backup of Redis"
	for gone, said := range map[string][]string{
		"board":   {"is lost (board_lost): it is listed, but its key is missing in Redis; " + rebuild},
		"windows": {"is lost (board_unlisted): its key is in Redis but not listed", "delete the key if it is not yours, otherwise " + rebuild},
		"ledger":  {"is lost (ledger_lost)", "so it is unknown which events count; " + rebuild},
		"schema":  {"is lost (schema)", "so the format of the scores is unknown; " + rebuild},
	} {
		t.Run(gone, func(t *testing.T) {
			w := aBoard(t)
			w.states(t, 0, reading.StateCurrent)
			w.del(t, strings.Replace(gone, "board", "global:weekly:"+clitest.Window, 1))
			if r := w.states(t, 1, reading.StateLost, said...); r.Lost == nil || gone != "ledger" && r.Standings != nil && len(r.Standings) == 1 && r.Standings[0].Rank != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// While a lost Redis is refilled, no board looks whole, from the first call that starts the refill.
func TestABoardIsRefillingUntilTheLedgerIsPastTheLogsEnd(t *testing.T) {
	w := standingsOf(t)
	begun, err := w.Store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "points"}, At: ledger.At(0), Refill: 2}, {Partition: ledger.Partition{Topic: "points", Number: 1}, At: ledger.At(7), Refill: 7}})
	if err != nil || begun != ledger.Began {
		t.Fatal(begun, err)
	}
	for p := range 2 {
		w.Reports(t, p, workers.Line{State: workers.StateRunning, Lag: new(int64)})
	}
	r := w.states(t, 0, reading.StateRefilling, "refilling after Redis was lost or the boards were rebuilt: 2 records of points/0 still to read; until then boards are partial")
	if len(r.Refilling) != 1 || r.Refilling[0] != (refillingPartition{"points/0", "0", 2}) {
		t.Errorf("%+v", r.Refilling)
	}
	w.At[0] = ledger.At(0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	w.states(t, 0, reading.StateRefilling, "1 record of points/0 still")
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	w.states(t, 0, reading.StateCurrent)
}

func TestABoardSaysHowFarWhatCountsItsEventsIsBehind(t *testing.T) {
	w := aBoard(t)
	now := time.Now().UTC()
	records := func(n int64) *int64 { return &n }
	running := workers.Line{State: workers.StateRunning, Lag: new(int64)}
	for _, c := range []struct {
		name  string
		lines [2]workers.Line
		state string
		said  []string
	}{
		{"events on their way", [2]workers.Line{{State: workers.StateRunning, Lag: records(7), Oldest: now.Add(-time.Second), At: now}, running}, reading.StateCurrent, nil},
		{"a backlog", [2]workers.Line{{State: workers.StateRunning, Lag: records(12_345), Oldest: now.Add(-3 * time.Minute), At: now}, {State: workers.StateRunning, Lag: records(5), Oldest: now, At: now}},
			reading.StateLagging, []string{"catching up: 12,350 records, 3m0s behind, as of "}},
		{"a halt", [2]workers.Line{{State: workers.StateHalted, Reason: "gap", What: "events are\x1b gone", Remedy: "restore them", Lag: records(3)}, running},
			reading.StateStalled, []string{`not counting: points/0 is halted (gap): events are\x1b gone`, "to do: restore them"}},
		{"a wait", [2]workers.Line{running, {State: workers.StateWaiting, Reason: "redis_full", What: "full", Lag: records(3)}}, reading.StateStalled, []string{"not counting: points/1 is waiting (redis_full): full"}},
		{"nobody there", [2]workers.Line{{State: workers.StateRunning, Lag: records(3), At: now.Add(-time.Hour)}, {State: workers.StateRunning, At: now.Add(-2 * time.Hour)}},
			reading.StateStalled, []string{"no worker of points/0, points/1 has reported for 1h"}},
		{"a transaction", [2]workers.Line{running, {State: workers.StateRunning, Reason: workers.ReasonTransaction, What: "a producer's transaction", Lag: records(3)}},
			reading.StateStalled, []string{"not counting: points/1 is running (transaction): a producer's transaction"}},
		{"a worker that has not found its position yet", [2]workers.Line{running, {State: workers.StateRunning}}, reading.StateLagging, []string{"catching up: the lag is not known yet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p, l := range c.lines {
				w.Reports(t, p, l)
			}
			r := w.states(t, 0, c.state, c.said...)
			if len(r.Stalled) > 0 != (c.state == reading.StateStalled) {
				t.Errorf("%+v", r.Stalled)
			}
			if known := c.lines[1].Lag != nil && c.name != "nobody there"; (r.Lag != nil) != known || (r.BehindMS != nil) != known {
				t.Errorf("%+v", r)
			}
		})
	}
	w.Reports(t, 0, running)
	w.Reports(t, 1, running)
	w.Environ = append(w.Environ, "STANDINGS_KAFKA_TOPICS=points,extra")
	if r := w.states(t, 0, reading.StateLagging, "no events have been read yet of extra"); len(r.NotBegun) != 1 {
		t.Errorf("%+v", r)
	}
	require.NoError(t, w.reader.Client.Del(t.Context(), w.reader.Config.Redis.Prefix+":{0}:workers").Err())
	w.states(t, 0, reading.StateStalled, "no worker of points/0, points/1 has reported: ")
}

// A wiped Redis holds only what the workers have written since.
func TestAWipedRedisShowsWhyItIsNotRefilled(t *testing.T) {
	w := standingsOf(t)
	w.Reports(t, 0, workers.Line{State: workers.StateHalted, Reason: "gap", What: "the log begins only at offset 7", Remedy: "restore a backup"})
	w.states(t, 1, reading.StateEmpty, "points/0 is halted (gap): the log begins only at offset 7", "Redis has no keys under the prefix")
}
