package start

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

func sweepAt(from, to int64) ledger.Position {
	return ledger.Position{From: from, To: to, Hash: 0x8f3c000000000000}
}

func TestTheStartTable(t *testing.T) {
	log := func(start, end int64) kafkaconn.Log { return kafkaconn.Log{Start: start, End: end} }
	for _, c := range []struct {
		name  string
		facts Facts
		onGap OnGap
		want  Decision
		halt  string // reason
		says  string
	}{
		{"torn", Facts{Found: "torn:480", Ledger: 1, Log: log(0, 500)}, GapHalts, Decision{}, health.HaltTorn, "torn:480"},
		{"torn, whatever on_gap says", Facts{Found: "torn:480", Ledger: 1, Log: log(490, 500)}, GapContinues, Decision{}, health.HaltTorn, ""},
		{"unreadable", Facts{Found: "x", Ledger: 1, Log: log(0, 500)}, GapContinues, Decision{}, health.HaltTorn, `"x"`},
		{"empty while windows are listed", Facts{Windows: 3, Log: log(0, 500)}, GapContinues, Decision{}, health.HaltOrphaned, "3 windows"},
		{"empty while windows are listed, with commits", Facts{Windows: 3, Committed: true, Log: log(0, 500)}, GapHalts, Decision{}, health.HaltOrphaned, ""},

		{"a ledger without a schema", Facts{Found: "480", Ledger: 1, SchemaGone: true, Log: log(0, 500)}, GapContinues, Decision{}, health.HaltSchema, "no schema"},

		{"a position", Facts{Found: "480", Ledger: 1, Log: log(0, 500)}, GapHalts, Decision{GoOn, ledger.At(480)}, "", ""},
		{"a position at the log's start", Facts{Found: "480", Ledger: 1, Log: log(480, 500)}, GapHalts, Decision{GoOn, ledger.At(480)}, "", ""},
		{"a position at the log's end", Facts{Found: "480", Ledger: 1, Log: log(0, 480)}, GapHalts, Decision{GoOn, ledger.At(480)}, "", ""},
		{"a sweep", Facts{Found: sweepAt(120, 480).String(), Ledger: 1, Log: log(120, 480)}, GapHalts, Decision{GoOn, sweepAt(120, 480)}, "", ""},
		{"a position, windows and no commits", Facts{Found: "480", Ledger: 1, Windows: 9, Log: log(0, 500)}, GapHalts, Decision{GoOn, ledger.At(480)}, "", ""},

		{"before the log's start", Facts{Found: "480", Ledger: 1, Log: log(481, 500)}, GapHalts, Decision{}, health.HaltGap, "from offset 480 to 480"},
		{"before the log's start, to be continued", Facts{Found: "480", Ledger: 1, Log: log(490, 500)}, GapContinues, Decision{Skip, ledger.At(490)}, "", ""},
		{"a sweep cut by a gap", Facts{Found: sweepAt(120, 480).String(), Ledger: 1, Log: log(200, 500)}, GapHalts, Decision{}, health.HaltGap, "from offset 120 to 199"},
		{"a sweep cut by a gap, to be continued", Facts{Found: sweepAt(120, 480).String(), Ledger: 1, Log: log(200, 500)}, GapContinues, Decision{Skip, sweepAt(200, 480)}, "", ""},
		{"a sweep up to the gap's end, to be continued", Facts{Found: sweepAt(120, 480).String(), Ledger: 1, Log: log(480, 500)}, GapContinues, Decision{Skip, ledger.At(480)}, "", ""},
		{"a sweep all of which is gone, to be continued", Facts{Found: sweepAt(120, 480).String(), Ledger: 1, Log: log(490, 500)}, GapContinues, Decision{Skip, ledger.At(490)}, "", ""},

		{"past the log's end", Facts{Found: "501", Ledger: 1, Log: log(0, 500)}, GapHalts, Decision{Confirm, ledger.At(501)}, "", ""},
		{"a sweep past the log's end", Facts{Found: sweepAt(120, 501).String(), Ledger: 1, Log: log(0, 500)}, GapContinues, Decision{Confirm, sweepAt(120, 501)}, "", ""},
		{"a sweep from before the log to past its end", Facts{Found: sweepAt(1, 501).String(), Ledger: 1, Log: log(10, 500)}, GapContinues, Decision{Confirm, sweepAt(1, 501)}, "", ""},

		{"an added partition", Facts{Others: true, Ledger: 6, Windows: 3, Log: log(0, 500)}, GapHalts, Decision{Step: Join}, "", ""},
		{"an added partition with commits", Facts{Others: true, Ledger: 6, Committed: true, Log: log(0, 500)}, GapHalts, Decision{Step: Join}, "", ""},
		{"an added partition that has lost its beginning", Facts{Others: true, Ledger: 6, Log: log(7, 500)}, GapHalts, Decision{}, health.HaltGap, "from offset 0 to 6"},
		{"an added partition that has lost its beginning, to be continued", Facts{Others: true, Ledger: 6, Log: log(7, 500)}, GapContinues, Decision{Step: Join}, "", ""},

		{"Redis was lost", Facts{Committed: true, Log: log(7, 500)}, GapHalts, Decision{Step: Recover}, "", ""},
		{"another topic's ledger alone, and commits", Facts{Ledger: 6, Windows: 3, Committed: true, Log: log(0, 500)}, GapHalts, Decision{Step: Recover}, "", ""},
		{"first start", Facts{Log: log(7, 500)}, GapHalts, Decision{Step: Begin}, "", ""},
		{"first start beside another topic", Facts{Ledger: 6, Windows: 3, Log: log(0, 500)}, GapHalts, Decision{Step: Begin}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.Partition = ledger.Partition{Topic: "events", Number: 4}
			got, err := Decide(c.facts, c.onGap)
			if c.halt == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				return
			}
			var h *health.Halt
			require.ErrorAs(t, err, &h)
			require.Equal(t, c.halt, h.Reason)
			require.Contains(t, h.What, c.says)
			require.NotEmpty(t, h.Remedy)
			require.Equal(t, Decision{}, got)
		})
	}
}

// A rebuild cannot repair a ledger that it cannot read, or that has no schema.
func TestAHaltNamesWhatSettlesIt(t *testing.T) {
	for _, c := range []struct {
		facts     Facts
		dependsOn bool // the ledger must be deleted first
	}{
		{Facts{Found: "torn:480", Ledger: 1}, false},
		{Facts{Windows: 3}, false},
		{Facts{Windows: 3, SchemaGone: true}, false},
		{Facts{Found: "torn:480", Ledger: 1, SchemaGone: true}, true},
		{Facts{Found: "torn:x", Ledger: 1}, true},
		{Facts{Found: "x", Ledger: 1}, true},
		{Facts{Found: "480", Ledger: 1, SchemaGone: true}, true},
	} {
		_, err := Decide(c.facts, GapHalts)
		var h *health.Halt
		require.ErrorAs(t, err, &h)
		require.Contains(t, h.Remedy, "consumer rebuild")
		require.Equal(t, c.dependsOn, strings.Contains(h.Remedy, "delete the ledger"), "%+v: %s", c.facts, h.Remedy)
	}
}

func TestASkipNeverMovesBackAndNeverPastWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 100).Draw(t, "from")
		at := ledger.At(from)
		if rapid.Bool().Draw(t, "sweeping") {
			at = sweepAt(from, from+rapid.Int64Range(1, 50).Draw(t, "swept"))
		}
		start := rapid.Int64Range(0, 200).Draw(t, "start")
		log := kafkaconn.Log{Start: start, End: start + rapid.Int64Range(0, 100).Draw(t, "length")}
		d, err := Decide(Facts{Partition: ledger.Partition{Topic: "e"}, Found: at.String(), Ledger: 1, Log: log}, GapContinues)
		require.NoError(t, err)
		if d.Step == Confirm {
			require.Greater(t, at.To, log.End)
			return
		}
		require.GreaterOrEqual(t, d.At.From, at.From)
		require.GreaterOrEqual(t, d.At.From, log.Start)
		require.LessOrEqual(t, d.At.To, max(log.End, log.Start))
		if d.At.Sweeping() {
			require.Equal(t, at.Hash, d.At.Hash)
			require.Equal(t, at.To, d.At.To)
		}
		require.Equal(t, d.Step == GoOn, d.At == at)
	})
}

func TestTheEarliestLiveWindowAsAWalkThroughTheDaysFindsIt(t *testing.T) {
	const day = 24 * time.Hour
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu"}).Draw(t, "zone")
		calendar, err := periods.NewCalendar(zone, rapid.SampledFrom([]string{"monday", "sunday"}).Draw(t, "week"))
		require.NoError(t, err)
		now := time.UnixMilli(rapid.Int64Range(1e12, 2e12).Draw(t, "now"))
		retention := map[periods.Period]time.Duration{}
		for _, p := range []periods.Period{periods.Daily, periods.Weekly, periods.Monthly, periods.Yearly} {
			if rapid.Bool().Draw(t, string(p)) {
				retention[p] = time.Duration(rapid.IntRange(0, 900).Draw(t, "days")) * day
			}
		}
		got, err := liveFrom(kept(calendar, retention), now)
		require.NoError(t, err)

		want, shift := now.UnixMilli(), int64(0)
		if zone != "UTC" { // a window may have been opened with other time zone data
			shift = periods.MaxShift
		}
		for p, kept := range retention {
			for at := now; now.Sub(at) < 1300*day; at = at.Add(-12 * time.Hour) {
				w, err := calendar.At(p, at.UnixMilli())
				require.NoError(t, err)
				if w.End+kept.Milliseconds()+shift > now.UnixMilli() {
					want = min(want, w.Start-shift)
				}
			}
		}
		require.Equal(t, want, got)
	})
}

// kept returns built-in periods with these retentions.
func kept(c periods.Calendar, retention map[periods.Period]time.Duration) (all []Kept) {
	for name, r := range retention {
		all = append(all, Kept{periods.BuiltIn(name, c), r})
	}
	return all
}

func TestAllTimeLivesFromTheBeginning(t *testing.T) {
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	got, err := liveFrom(kept(calendar, map[periods.Period]time.Duration{periods.AllTime: 0}), time.Now())
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = liveFrom(kept(calendar, map[periods.Period]time.Duration{periods.Weekly: 0}), time.Unix(1<<33, 0))
	require.ErrorContains(t, err, "clock of Redis")
}

func TestATopicIsTheFieldUpToItsLastSlash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z/._-]{1,9}`).Draw(t, "topic")
		p := ledger.Partition{Topic: name, Number: rapid.IntRange(0, 1e6).Draw(t, "partition")}
		state := ledger.State{Ledger: map[string]string{p.String(): "0", "nothing": "0"}}
		require.True(t, HasTopic(state, name))
		require.False(t, HasTopic(state, name[1:]))
		require.False(t, HasTopic(state, name+"/1"))
	})
}
