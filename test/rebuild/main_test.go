// Package rebuild runs `consumer rebuild` as a process, together with consumers, producers and readers, on a real
// Kafka and a real Redis. The boards that it swaps in equal the oracle's, no reader sees an intermediate state, and
// a rebuild that is killed or paused at any point leaves the live boards as they were.
package rebuild

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) {
	// The tests spend most of their time waiting.
	harness.MainWaiting(m)
}

// newPlace returns a place on the shared Kafka with its own Redis.
func newPlace(t *testing.T, o harness.Options) *harness.Place {
	t.Helper()
	if o.Kafka == nil {
		o.Kafka = testenv.RealKafka(t, "what a log, its offsets and a group do beside a rebuild")
	}
	if o.Redis == nil {
		o.Redis = testenv.PrivateRedis(t)
	}
	return harness.New(t, o)
}

// rebuilding is a rebuild that runs as a process.
type rebuilding struct {
	*harness.Process

	t *testing.T
}

// report is the rebuild's output.
type report struct {
	Swapped    bool  `json:"swapped"`
	Records    int64 `json:"records"`
	HeldMS     int64 `json:"held_ms"`
	TookMS     int64 `json:"took_ms"`
	Partitions []struct {
		Partition string `json:"partition"`
		From      int64  `json:"from"`
	} `json:"partitions"`
	Windows []struct {
		Board      string `json:"board"`
		Period     string `json:"period"`
		Window     string `json:"window"`
		Action     string `json:"fate"`
		Why        string `json:"why"`
		Incomplete bool   `json:"incomplete"`
	} `json:"windows"`
	Refused       []string `json:"refused"`
	Differ        *int     `json:"differ"` // number of standings that differ
	AtLeast       *bool    `json:"at_least"`
	DifferWindows []any    `json:"differ_windows"`
	Standings     []struct {
		Board, Period, Window, Member string
		Live, Log                     *struct{ Points int64 }
	} `json:"standings"`
}

// actions counts the windows by action.
func (r *report) actions() map[string]int {
	n := map[string]int{}
	for _, w := range r.Windows {
		n[w.Action]++
	}
	return n
}

// differ returns how many standings differ, -1 if that is unknown.
func (r *report) differ() int {
	if r.Differ == nil || r.AtLeast == nil || *r.AtLeast {
		return -1
	}
	return *r.Differ
}

// startRebuild starts a rebuild. It is killed when the test ends if it still runs.
func startRebuild(t *testing.T, place *harness.Place, args ...string) *rebuilding {
	t.Helper()
	return &rebuilding{place.Begin(t, nil, append([]string{"rebuild", "--json"}, args...)...), t}
}

// ended waits for the end and returns the exit code, or 128 plus the signal's number.
func (r *rebuilding) ended() int {
	r.t.Helper()
	return r.AwaitExit(r.t, harness.Within)
}

// swapped waits for the end, requires exit code 0, and returns the report.
func (r *rebuilding) swapped() *report {
	r.t.Helper()
	if code := r.ended(); code != 0 {
		r.t.Fatalf("the rebuild ended with code %d:\n%s", code, r.Log.Text())
	}
	var said report
	if err := json.Unmarshal(r.Out.Bytes(), &said); err != nil {
		r.t.Fatalf("%v in %q", err, r.Out.String())
	}
	return &said
}

// refused waits until the rebuild ends, and requires exit code 1 and a message with all of these texts.
func (r *rebuilding) refused(says ...string) {
	r.t.Helper()
	if code := r.ended(); code != 1 {
		r.t.Fatalf("the rebuild ended with code %d, want 1:\n%s%s", code, r.Log.Text(), r.Out.String())
	}
	for _, text := range says {
		if !strings.Contains(r.Log.Text(), text) {
			r.t.Errorf("the rebuild doesn't say %q:\n%s", text, r.Log.Text())
		}
	}
}

// window returns the latest listed window of a board and a period.
func window(t *testing.T, place *harness.Place, board, period string) string {
	t.Helper()
	found := ""
	for name := range place.Hash(t, "windows") {
		if strings.HasPrefix(name, board+":"+period+":") {
			found = max(found, name)
		}
	}
	if found == "" {
		t.Fatalf("no %s window of %s is listed", period, board)
	}
	return found
}

// same requires that boards have not changed.
func same(t *testing.T, was, is map[string]map[string]uint64) {
	t.Helper()
	d := &oracle.Differences{}
	d.Boards(was, is)
	if text := d.String(); text != "" {
		t.Errorf("the boards aren't what they were:\n%s", text)
	}
}
