package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

func sweepAt(from, to int64) ledger.Position {
	return ledger.Position{From: from, To: to, Hash: 0x8f3c000000000000}
}

func TestTheStartTable(t *testing.T) {
	log := func(start, end int64) bounds { return bounds{start, end} }
	for _, c := range []struct {
		name  string
		facts facts
		onGap OnGap
		want  decision
		halt  string // reason
		says  string
	}{
		{"torn", facts{found: "torn:480", ledger: 1, log: log(0, 500)}, GapHalts, decision{}, HaltTorn, "torn:480"},
		{"torn, whatever on_gap says", facts{found: "torn:480", ledger: 1, log: log(490, 500)}, GapContinues, decision{}, HaltTorn, ""},
		{"unreadable", facts{found: "x", ledger: 1, log: log(0, 500)}, GapContinues, decision{}, HaltTorn, `"x"`},
		{"empty while windows are listed", facts{windows: 3, log: log(0, 500)}, GapContinues, decision{}, HaltOrphaned, "3 windows"},
		{"empty while windows are listed, with commits", facts{windows: 3, committed: true, log: log(0, 500)}, GapHalts, decision{}, HaltOrphaned, ""},

		{"a ledger without a schema", facts{found: "480", ledger: 1, schemaGone: true, log: log(0, 500)}, GapContinues, decision{}, HaltSchema, "no schema"},

		{"a position", facts{found: "480", ledger: 1, log: log(0, 500)}, GapHalts, decision{goOn, ledger.At(480)}, "", ""},
		{"a position at the log's start", facts{found: "480", ledger: 1, log: log(480, 500)}, GapHalts, decision{goOn, ledger.At(480)}, "", ""},
		{"a position at the log's end", facts{found: "480", ledger: 1, log: log(0, 480)}, GapHalts, decision{goOn, ledger.At(480)}, "", ""},
		{"a sweep", facts{found: sweepAt(120, 480).String(), ledger: 1, log: log(120, 480)}, GapHalts, decision{goOn, sweepAt(120, 480)}, "", ""},
		{"a position, windows and no commits", facts{found: "480", ledger: 1, windows: 9, log: log(0, 500)}, GapHalts, decision{goOn, ledger.At(480)}, "", ""},

		{"before the log's start", facts{found: "480", ledger: 1, log: log(481, 500)}, GapHalts, decision{}, HaltGap, "from offset 480 to 480"},
		{"before the log's start, to be continued", facts{found: "480", ledger: 1, log: log(490, 500)}, GapContinues, decision{skip, ledger.At(490)}, "", ""},
		{"a sweep cut by a gap", facts{found: sweepAt(120, 480).String(), ledger: 1, log: log(200, 500)}, GapHalts, decision{}, HaltGap, "from offset 120 to 199"},
		{"a sweep cut by a gap, to be continued", facts{found: sweepAt(120, 480).String(), ledger: 1, log: log(200, 500)}, GapContinues, decision{skip, sweepAt(200, 480)}, "", ""},
		{"a sweep up to the gap's end, to be continued", facts{found: sweepAt(120, 480).String(), ledger: 1, log: log(480, 500)}, GapContinues, decision{skip, ledger.At(480)}, "", ""},
		{"a sweep all of which is gone, to be continued", facts{found: sweepAt(120, 480).String(), ledger: 1, log: log(490, 500)}, GapContinues, decision{skip, ledger.At(490)}, "", ""},

		{"past the log's end", facts{found: "501", ledger: 1, log: log(0, 500)}, GapHalts, decision{confirm, ledger.At(501)}, "", ""},
		{"a sweep past the log's end", facts{found: sweepAt(120, 501).String(), ledger: 1, log: log(0, 500)}, GapContinues, decision{confirm, sweepAt(120, 501)}, "", ""},
		{"a sweep from before the log to past its end", facts{found: sweepAt(1, 501).String(), ledger: 1, log: log(10, 500)}, GapContinues, decision{confirm, sweepAt(1, 501)}, "", ""},

		{"an added partition", facts{others: true, ledger: 6, windows: 3, log: log(0, 500)}, GapHalts, decision{step: join}, "", ""},
		{"an added partition with commits", facts{others: true, ledger: 6, committed: true, log: log(0, 500)}, GapHalts, decision{step: join}, "", ""},
		{"an added partition that has lost its beginning", facts{others: true, ledger: 6, log: log(7, 500)}, GapHalts, decision{}, HaltGap, "from offset 0 to 6"},
		{"an added partition that has lost its beginning, to be continued", facts{others: true, ledger: 6, log: log(7, 500)}, GapContinues, decision{step: join}, "", ""},

		{"Redis was lost", facts{committed: true, log: log(7, 500)}, GapHalts, decision{step: recoverAll}, "", ""},
		{"another topic's ledger alone, and commits", facts{ledger: 6, windows: 3, committed: true, log: log(0, 500)}, GapHalts, decision{step: recoverAll}, "", ""},
		{"first start", facts{log: log(7, 500)}, GapHalts, decision{step: begin}, "", ""},
		{"first start beside another topic", facts{ledger: 6, windows: 3, log: log(0, 500)}, GapHalts, decision{step: begin}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.topic, c.facts.partition = "events", 4
			got, err := decide(c.facts, c.onGap)
			if c.halt == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				return
			}
			var h *Halt
			require.ErrorAs(t, err, &h)
			require.Equal(t, c.halt, h.Reason)
			require.Contains(t, h.What, c.says)
			require.NotEmpty(t, h.Remedy)
			require.Equal(t, decision{}, got)
		})
	}
}

// A rebuild can't settle a ledger that it can't read, or that has no schema.
func TestAHaltNamesWhatSettlesIt(t *testing.T) {
	for _, c := range []struct {
		facts     facts
		dependsOn bool // that the ledger is deleted first
	}{
		{facts{found: "torn:480", ledger: 1}, false},
		{facts{windows: 3}, false},
		{facts{windows: 3, schemaGone: true}, false},
		{facts{found: "torn:480", ledger: 1, schemaGone: true}, true},
		{facts{found: "torn:x", ledger: 1}, true},
		{facts{found: "x", ledger: 1}, true},
		{facts{found: "480", ledger: 1, schemaGone: true}, true},
	} {
		_, err := decide(c.facts, GapHalts)
		var h *Halt
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
		log := bounds{start, start + rapid.Int64Range(0, 100).Draw(t, "length")}
		d, err := decide(facts{topic: "e", found: at.String(), ledger: 1, log: log}, GapContinues)
		require.NoError(t, err)
		if d.step == confirm {
			require.Greater(t, at.To, log.end)
			return
		}
		require.GreaterOrEqual(t, d.at.From, at.From)
		require.GreaterOrEqual(t, d.at.From, log.start)
		require.LessOrEqual(t, d.at.To, max(log.end, log.start))
		if d.at.Sweeping() {
			require.Equal(t, at.Hash, d.at.Hash)
			require.Equal(t, at.To, d.at.To)
		}
		require.Equal(t, d.step == goOn, d.at == at)
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
		got, err := liveFrom(calendar, retention, now)
		require.NoError(t, err)

		want := now.UnixMilli()
		for p, kept := range retention {
			for at := now; now.Sub(at) < 1300*day; at = at.Add(-12 * time.Hour) {
				w, err := calendar.At(p, at.UnixMilli())
				require.NoError(t, err)
				if w.End+kept.Milliseconds() > now.UnixMilli() {
					want = min(want, w.Start)
				}
			}
		}
		require.Equal(t, want, got)
	})
}

func TestAllTimeLivesFromTheBeginning(t *testing.T) {
	calendar, err := periods.NewCalendar("UTC", "monday")
	require.NoError(t, err)
	got, err := liveFrom(calendar, map[periods.Period]time.Duration{periods.AllTime: 0}, time.Now())
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = liveFrom(calendar, map[periods.Period]time.Duration{periods.Weekly: 0}, time.Unix(1<<33, 0))
	require.ErrorContains(t, err, "clock of Redis")
}

func TestATopicIsTheFieldUpToItsLastSlash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z/._-]{1,9}`).Draw(t, "topic")
		require.Equal(t, name, topicOf(ledger.Field(name, rapid.IntRange(0, 1e6).Draw(t, "partition"))))
	})
	require.Empty(t, topicOf("nothing"))
	require.True(t, strings.HasPrefix(topicOf("a/b"), "a"))
}
