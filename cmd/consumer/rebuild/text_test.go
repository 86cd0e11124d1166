package rebuild

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/test/clitest"
)

func planned() *rebuild.Plan {
	return &rebuild.Plan{
		Plan: &shadow.Plan{Shadow: map[string]string{"points/0": "480"}, Windows: []shadow.Planned{
			{Window: ledger.Window{Board: "eu", Period: "weekly", Name: "2026-W47", Start: 1794787200000, End: 1795392000000}, Action: shadow.Replaced},
			{Window: ledger.Window{Board: "eu", Period: "yearly", Name: "2026"}, Action: shadow.Kept, Why: "it starts before then"},
			{Window: ledger.Window{Board: "us", Period: "weekly", Name: "2026-W47"}, Action: shadow.Dropped},
			{Window: ledger.Window{Board: "us", Period: "yearly", Name: "2026"}, Action: shadow.Replaced, Incomplete: true},
		}},
		Starts: []replay.Start{
			{Field: "points/0", At: 0},
			{Field: "points/1", At: 310_002, LogStart: true, Origin: ledger.Origin{Offset: 310_002, Time: 1795248930123}},
		},
		Until: map[string]int64{"points/0": 1_204_311, "points/1": 1_198_870},
	}
}

func TestAPlanSaysWhatIsReadAndWhatBecomesOfWindows(t *testing.T) {
	var b strings.Builder
	(&show{w: &b}).planned(planned())
	require.Equal(t, strings.TrimPrefix(`
PARTITION     FROM         TO    RECORDS  COMPLETE SINCE
points/0         0  1,204,311  1,204,311  the beginning
points/1   310,002  1,198,870    888,868  2026-11-21T08:15:30Z, as far as the log goes back

2 windows are to be replaced, 1 kept, 1 dropped, as the log has no members in them:

WINDOW          IS        WHY
eu:yearly:2026  kept      it starts before then
us:yearly:2026  replaced  shown as incomplete

`, "\n"), b.String())
}

func result() *rebuild.Result {
	at := time.Date(2026, 11, 21, 8, 15, 30, 120e6, time.UTC)
	return &rebuild.Result{
		Plan: planned(), Holds: 1, Held: 17 * time.Millisecond, Records: 2_093_179, Took: 41840 * time.Millisecond, Exact: true,
		Differ: []shadow.WindowDifference{
			{Planned: shadow.Planned{Window: ledger.Window{Board: "eu", Period: "weekly", Name: "2026-W47"}}, Differ: 1204, OnlyA: 1, OnlyB: 2},
			{Planned: shadow.Planned{Window: ledger.Window{Board: "us", Period: "yearly", Name: "2026"}}},
		},
		Differences: []ranking.Difference{
			{Window: ledger.Window{Board: "eu", Period: "weekly", Name: "2026-W47"}, Member: "u\x1b1", A: ranking.Row{There: true, Points: 1025, ReachedAt: at}},
			{Window: ledger.Window{Board: "eu", Period: "weekly", Name: "2026-W47"}, Member: "u2", A: ranking.Row{There: true, Foreign: true, Score: 0.1}, B: ranking.Row{There: true, Points: -3, ReachedAt: at}},
		},
	}
}

func TestADryRunSaysWhatWouldChangeAndThatNothingDid(t *testing.T) {
	var b strings.Builder
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.NoError(t, writeResult(&b, result(), &flags{dryRun: true, diff: true}, zone))
	text := b.String()
	for _, line := range []string{
		"2 windows are to be replaced",
		"1,204 standings differ in 1 window.",
		"eu:weekly:2026-W47   1,204          1                2",
		`eu:weekly:2026-W47  u\x1b1  1,025 at 2026-11-21 09:15:30.120`,
		"u2      0.1, which is no score of this layout  -3 at 2026-11-21 09:15:30.120",
		"and 1,202 more: --limit\ntimes are those of Europe/Berlin\n\nRead",
		"Read 2,093,179 records in 41.8s. Ingestion was held for 17ms.",
		"Nothing was changed: this was a dry run.",
	} {
		require.Contains(t, text, line)
	}
	_, differ, _ := strings.Cut(text, "standings differ")
	require.NotContains(t, differ, "us:yearly:2026", "a window that doesn't differ isn't listed among those that do")
}

func TestARebuildSaysWhatItDid(t *testing.T) {
	var b strings.Builder
	r := result()
	r.Swapped, r.Holds = true, 3
	require.NoError(t, writeResult(&b, r, &flags{}, time.UTC))
	require.Contains(t, b.String(), "2 windows were replaced, 1 kept")
	require.Contains(t, b.String(), "Ingestion was held 3 times, the last time for 17ms.")
	require.NotContains(t, b.String(), "differ")
	require.NotContains(t, b.String(), "dry run")

	b.Reset()
	r.Holds, r.Held = 0, 0
	require.NoError(t, writeResult(&b, r, &flags{}, time.UTC))
	require.Contains(t, b.String(), "Ingestion was not paused")

	b.Reset()
	r = result()
	r.Held, r.Exact, r.Differ[0].Differ = 300*time.Microsecond, false, 1
	require.NoError(t, writeResult(&b, r, &flags{dryRun: true}, time.UTC))
	require.Contains(t, b.String(), "at least 1 standing differs in 1 window.")
	require.Contains(t, b.String(), "Ingestion was held for 1ms.")

	b.Reset()
	require.NoError(t, writeResult(&b, &rebuild.Result{Plan: planned()}, &flags{}, time.UTC))
	require.Equal(t, "Nothing is to be replaced.\n", b.String())
}

// Names of windows come from Redis, to which another program may have written them.
func TestWhatStandsInRedisReachesNoTerminalRaw(t *testing.T) {
	r := result()
	evil := "2026-W47\x1b]0;pwned\a\nNothing is to be replaced."
	r.Plan.Windows[1].Name, r.Plan.Starts[0].Field = evil, evil
	r.Differ[0].Name, r.Differences[0].Name = evil, evil
	var b strings.Builder
	(&show{w: &b}).planned(r.Plan)
	require.NoError(t, writeResult(&b, r, &flags{dryRun: true, diff: true}, time.UTC))
	(&show{w: &b}).note("what the rebuild leaves expires: " + evil)
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, b.String(), "\a")
	require.NotContains(t, b.String(), "\nNothing is to be replaced.")
	require.Contains(t, b.String(), `2026-W47\x1b]0;pwned\x07 Nothing is to be replaced.`) // a note is one line
	require.Equal(t, 5, strings.Count(b.String(), `2026-W47\x1b]0;pwned\x07\x0aNothing is to be replaced.`), "%s", &b)
}

type full struct{}

var errNoSpace = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errNoSpace }

func TestAResultThatCannotBeWrittenIsAnErrorThatSaysWhatWasDone(t *testing.T) {
	r := result()
	err := unwrittenResult(writeResult(full{}, r, &flags{dryRun: true}, time.UTC), r)
	require.ErrorIs(t, err, errNoSpace)
	require.ErrorContains(t, err, "the boards are unchanged")
	r.Swapped = true
	err = unwrittenResult(writeResult(full{}, r, &flags{}, time.UTC), r)
	require.ErrorIs(t, err, errNoSpace)
	require.ErrorContains(t, err, "the boards were rebuilt")
	require.NoError(t, unwrittenResult(writeResult(&strings.Builder{}, r, &flags{}, time.UTC), r))
}

func TestARebuildThatIsInterruptedWhileItAsksKafkaSaysSo(t *testing.T) {
	_, environ := clitest.FakeKafka(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var errs strings.Builder
	p := &cli.Program{Environ: environ, Stdout: full{}, Stderr: &errs}
	code := p.Run(ctx, p.Root("unknown", Command(p)), []string{"rebuild"})
	require.Equal(t, cli.ExitFailure, code)
	require.Equal(t, "consumer: interrupted\n", errs.String())
}

func TestWarningsAreNotesAndTheRestOfTheLogIsLeftOut(t *testing.T) {
	var b strings.Builder
	log := logging.Notes((&show{w: &b}).note).With(zap.String("topic", "points"))
	log.Info("partition running")
	log.Warn("waiting, and trying again", zap.Error(errors.New("no leader")), zap.Int("partition", 3))
	require.Equal(t, "waiting, and trying again: no leader\n", b.String())
}

// ofThree returns a result on three shards, one of which had lost a window.
func ofThree() *rebuild.Result {
	r := result()
	at := time.Date(2026, 11, 21, 8, 15, 30, 120e6, time.UTC)
	r.Plan.Of, r.Plan.Shards = 3, [][]int{nil, {1}, nil, nil}
	r.Holds = 4
	for i := range 3 {
		r.Shards = append(r.Shards, rebuild.ShardResult{
			Addr: "10.0.0.7:6379", Plan: planned(), Swapped: true, At: at.Add(time.Duration(i) * time.Second), Held: 17 * time.Millisecond, Holds: 1,
		})
	}
	r.Shards[2].Holds = 2
	return r
}

func TestARebuildOfSeveralShardsSaysWhenItWasWhichShardsTurn(t *testing.T) {
	var b strings.Builder
	r := ofThree()
	r.Swapped = true
	require.NoError(t, writeResult(&b, r, &flags{}, time.UTC))
	require.Equal(t, strings.TrimPrefix(`
2 windows were replaced, 1 kept, 1 dropped, as the log has no members in them:

WINDOW          IS        WHY
eu:yearly:2026  kept      on shard 1 of 3: it starts before then
us:yearly:2026  replaced  shown as incomplete

SHARD  MASTER         SWAPPED                   HELD  HOLDS
    0  10.0.0.7:6379  2026-11-21T08:15:30.120Z  17ms      1
    1  10.0.0.7:6379  2026-11-21T08:15:31.120Z  17ms      1
    2  10.0.0.7:6379  2026-11-21T08:15:32.120Z  17ms      2

Read 2,093,179 records in 41.8s. Ingestion was held shard by shard, for at most 17ms.
`, "\n"), b.String())
}

func TestARebuildThatEndsBetweenTwoShardsSaysWhichAreRebuilt(t *testing.T) {
	r := ofThree()
	r.Shards[1].Swapped, r.Shards[2].Swapped = false, false
	err := explain(t.Context(), errors.New("shard 1 of 3 on 10.0.0.7:6379: some reason"), &config.Config{}, r)
	require.EqualError(t, err, "shard 0 of 3 is rebuilt; shards 1 and 2 of 3 are as before. "+
		"Each shard is exact by itself; run the rebuild again for the others: shard 1 of 3 on 10.0.0.7:6379: some reason")
	r.Shards[1].Unsure, r.Unsure = true, true
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err = explain(ctx, context.Canceled, &config.Config{}, r)
	require.EqualError(t, err, "shard 0 of 3 is rebuilt; shard 1 of 3 is swapped or not: that isn't known; shard 2 of 3 is as before. "+
		"Each shard is exact by itself; run the rebuild again for the others: interrupted")
}
