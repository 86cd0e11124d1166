package workers

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// Each case has the state of one or two topics, and the progress that readers compute from it.
func TestHowFarTheBoardsAreIsWhatStandsBesideThem(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	reported := func(field, state string, age time.Duration, lag int64, oldest time.Time) (string, Reported) {
		l := Line{Owner: "me", State: state, At: ago(age), Lag: &lag, Oldest: oldest}
		if lag < 0 {
			l.Lag = nil
		}
		text, err := json.Marshal(l)
		require.NoError(t, err)
		return string(text), Reported{Field: field, Line: l, Age: age}
	}
	text := func(state string, age time.Duration, lag int64, oldest time.Time) string {
		s, _ := reported("", state, age, lag, oldest)
		return s
	}
	as := func(field, state string, age time.Duration, lag int64, oldest time.Time) []Reported {
		_, r := reported(field, state, age, lag, oldest)
		return []Reported{r}
	}
	never := time.Time{}
	torn := func(field string) []Reported {
		all := as(field, StateRunning, 2*time.Second, 0, never)
		all[0].Line.State, all[0].Line.Reason = StateHalted, HaltTorn
		return all
	}
	running := text(StateRunning, 2*time.Second, 0, never)

	for name, c := range map[string]struct {
		state      ledger.State
		topics     []string
		want       Progress
		catchingUp bool
		left       int64
	}{
		"nothing was written yet": {
			topics: []string{"a"},
			want:   Progress{},
		},
		"all is in": {
			state:  ledger.State{Ledger: map[string]string{"a/0": "5", "a/1": "7"}, Workers: map[string]string{"a/0": running, "a/1": text(StateRunning, 3*time.Second, 0, never)}},
			topics: []string{"a"},
			want:   Progress{Lag: Lag{Known: true}, ReportedAt: ago(3 * time.Second)},
		},
		"a piece was written in part, and its worker doesn't know yet": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "torn:5"}, Workers: map[string]string{"a/0": running}},
			topics:     []string{"a"},
			want:       Progress{Lag: Lag{Known: true}, ReportedAt: ago(2 * time.Second), Halted: torn("a/0")},
			catchingUp: true,
		},
		"what is always under way": {
			state:  ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": text(StateRunning, 2*time.Second, 40, ago(2*time.Second+behindAfter))}},
			topics: []string{"a"},
			want:   Progress{Lag: Lag{Known: true, Records: 40, Since: ago(2*time.Second + behindAfter)}, Behind: behindAfter, ReportedAt: ago(2 * time.Second)},
		},
		"behind, by all partitions together and since the oldest": {
			state: ledger.State{Ledger: map[string]string{"a/0": "5", "a/1": "5", "b/0": "5"}, Workers: map[string]string{
				"a/0": text(StateRunning, 2*time.Second, 40, ago(time.Minute)), "a/1": text(StateRunning, 3*time.Second, 2, ago(time.Hour)), "b/0": running,
			}},
			topics:     []string{"a", "b"},
			want:       Progress{Lag: Lag{Known: true, Records: 42, Since: ago(time.Hour)}, Behind: time.Hour - 3*time.Second, ReportedAt: ago(3 * time.Second)},
			catchingUp: true,
		},
		"behind, by what isn't known": {
			state: ledger.State{Ledger: map[string]string{"a/0": "5", "a/1": "5"}, Workers: map[string]string{
				"a/0": text(StateRunning, 2*time.Second, 40, ago(time.Hour)), "a/1": text(StateRunning, 3*time.Second, -1, never),
			}},
			topics:     []string{"a"},
			want:       Progress{ReportedAt: ago(3 * time.Second), Unread: true},
			catchingUp: true,
		},
		"none of the events that wait was read yet": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": `{"written":` + fmt.Sprint(ago(0).UnixMilli()) + `,"state":"running","lag":40,"unread":true}`}},
			topics:     []string{"a"},
			want:       Progress{Lag: Lag{Known: true, Records: 40}, Unread: true, ReportedAt: ago(0)},
			catchingUp: true,
		},
		"halted": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5", "a/1": "5"}, Workers: map[string]string{"a/0": text(StateHalted, time.Second, 3, never), "a/1": running}},
			topics:     []string{"a"},
			want:       Progress{Halted: as("a/0", StateHalted, time.Second, 3, never), Lag: Lag{Known: true, Records: 3}, ReportedAt: ago(2 * time.Second)},
			catchingUp: true,
		},
		"an open transaction holds records back": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": `{"written":` + fmt.Sprint(ago(0).UnixMilli()) + `,"state":"running","reason":"transaction","lag":40}`}},
			topics:     []string{"a"},
			want:       Progress{Blocked: []Reported{{Field: "a/0", Line: Line{Written: ago(0).UnixMilli(), State: StateRunning, Reason: ReasonTransaction, Lag: new(int64(40))}}}, Lag: Lag{Known: true, Records: 40}, ReportedAt: ago(0)},
			catchingUp: true,
		},
		"waiting": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": text(StateWaiting, time.Second, 0, never)}},
			topics:     []string{"a"},
			want:       Progress{Waiting: as("a/0", StateWaiting, time.Second, 0, never), Lag: Lag{Known: true}, ReportedAt: ago(time.Second)},
			catchingUp: true,
		},
		"a line that is just not stale": {
			state:  ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": text(StateRunning, StaleAfter, 0, never)}},
			topics: []string{"a"},
			want:   Progress{Lag: Lag{Known: true}, ReportedAt: ago(StaleAfter)},
		},
		"a stale line says nothing but who wrote it": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5", "a/1": "5"}, Workers: map[string]string{"a/0": text(StateHalted, StaleAfter+time.Second, 3, never), "a/1": running}},
			topics:     []string{"a"},
			want:       Progress{Silent: as("a/0", StateHalted, StaleAfter+time.Second, 3, never), ReportedAt: ago(StaleAfter + time.Second)},
			catchingUp: true,
		},
		"no line, and one that isn't one; the second partition before the tenth": {
			state:      ledger.State{Ledger: map[string]string{"a/10": "5", "a/2": "5"}, Workers: map[string]string{"a/10": "{"}},
			topics:     []string{"a"},
			want:       Progress{Silent: []Reported{{Field: "a/2"}, {Field: "a/10"}}},
			catchingUp: true,
		},
		"a worker whose partition isn't in the ledger": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": running, "a/1": text(StateHalted, time.Second, 0, never)}},
			topics:     []string{"a"},
			want:       Progress{Halted: as("a/1", StateHalted, time.Second, 0, never), Lag: Lag{Known: true}, ReportedAt: ago(2 * time.Second)},
			catchingUp: true,
		},
		"a topic that isn't consumed is nobody's": {
			state: ledger.State{Ledger: map[string]string{"a/0": "5", "b/0": "5", "a/b/0": "5"}, Workers: map[string]string{
				"a/0": running, "b/0": text(StateHalted, time.Second, 9, ago(time.Hour)),
			}},
			topics: []string{"a"},
			want:   Progress{Lag: Lag{Known: true}, ReportedAt: ago(2 * time.Second)},
		},
		"a topic that the ledger has nothing of": {
			state:      ledger.State{Ledger: map[string]string{"a/0": "5"}, Workers: map[string]string{"a/0": text(StateRunning, 2*time.Second, 4, ago(time.Hour))}},
			topics:     []string{"a", "b"},
			want:       Progress{NotBegun: []string{"b"}, ReportedAt: ago(2 * time.Second)},
			catchingUp: true,
		},
		"a start that failed after it had written the schema": {
			state:      ledger.State{Schema: "{}"},
			topics:     []string{"a"},
			want:       Progress{NotBegun: []string{"a"}},
			catchingUp: true,
		},
		"a lost Redis is refilled": {
			state: ledger.State{
				Ledger:  map[string]string{"a/0": "5", "a/1": "8..12@8000000000000000", "a/2": "12", "a/3": "torn:7", "a/10": "what isn't a position"},
				Refills: map[string]int64{"a/0": 9, "a/1": 10, "a/2": 12, "a/3": 10, "a/10": 4, "b/0": 100},
				Workers: map[string]string{"a/0": running, "a/1": running, "a/2": running, "a/3": running, "a/10": running},
			},
			topics: []string{"a"},
			want: Progress{
				Refilling: []Refilling{{"a/0", 5, 9}, {"a/1", 8, 10}, {"a/3", 7, 10}, {"a/10", 0, 4}},
				Lag:       Lag{Known: true}, ReportedAt: ago(2 * time.Second), Halted: torn("a/3"),
			},
			catchingUp: true,
			left:       4 + 2 + 3 + 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.state.Now = now
			got := Of(&c.state, c.topics)
			require.Equal(t, c.want, got)
			require.Equal(t, c.catchingUp, got.CatchingUp())
			require.Equal(t, c.left, got.Left())
		})
	}
}
