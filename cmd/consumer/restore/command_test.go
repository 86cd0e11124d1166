package restore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/test/clitest"
)

func TestTheJSONOfARestoreIsDocumented(t *testing.T) { clitest.Documented(t, "restore", report{}) }

func TestWhatIsMissingOnTheCommandLineIsNamed(t *testing.T) {
	for says, args := range map[string][]string{
		"--dry-run changes nothing":                     {"--dry-run", "--yes"},
		"there is nobody to ask: give --dry-run to see": {},
		"snapshots.url isn't set":                       {"--dry-run"},
	} {
		code, _, errs := clitest.Execute(t, Command, nil, append([]string{"restore"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, says)
	}
}

// The newest snapshot of the prefix that is whole is taken, and what is passed over is named.
func TestTheNewestSnapshotThatIsWholeIsTaken(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	dir := snapshot.Dir{Path: t.TempDir()}
	from := snapshot.Store{Files: dir}
	take := func() *snapshot.Manifest {
		m, err := from.Take(t.Context(), w.Shards, snapshot.Pace{Lease: time.Minute})
		require.NoError(t, err)
		return m
	}
	older, newest := take(), take()
	var notes []string
	note := func(line string) { notes = append(notes, line) }
	prefix := w.Store.Prefix()

	s, err := choose(t.Context(), from, "", prefix, note)
	require.NoError(t, err)
	require.Equal(t, newest.Name, s.Name)
	require.Equal(t, []string{"global:weekly:" + clitest.Window}, s.Windows())
	require.Equal(t, int64(1), s.Rows())
	var rows []string
	require.NoError(t, s.Pages(t.Context(), 0, func(p *ranking.SnapshotPage) error {
		for _, r := range p.Rows {
			rows = append(rows, r.Member)
		}
		return nil
	}))
	require.Equal(t, []string{"Kalobi"}, rows)
	require.Empty(t, notes)

	path := filepath.Join(dir.Path, newest.Name, newest.Files[0].Name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(path, text, 0o600))
	s, err = choose(t.Context(), from, "", prefix, note)
	require.NoError(t, err)
	require.Equal(t, older.Name, s.Name)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], newest.Name)

	_, err = choose(t.Context(), from, newest.Name, prefix, note)
	require.ErrorContains(t, err, newest.Name, "one that is named isn't passed over")
	_, err = choose(t.Context(), from, older.Name, "other", note)
	require.ErrorContains(t, err, "redis.prefix")
	_, err = choose(t.Context(), from, "", "other", note)
	require.ErrorContains(t, err, `no snapshot of the prefix "other"`)
}

func TestAPlanSaysWhatIsAboutToBeDone(t *testing.T) {
	at := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	s := &rebuild.Snapshot{Name: "20261125T030000Z-abcdefgh", Surveys: []*snapshot.Survey{
		{Begin: ranking.Instant{Now: at.UnixMilli()}, Counts: snapshot.Counts{Rows: 2_301_877}},
	}}
	c := &rebuild.Check{Shards: 1, Empty: []int{0}, Partitions: []rebuild.CheckedPartition{
		{Field: "points/0", From: 9_310_022, Reach: 9_318_104, Until: 9_871_300, Log: kafkaconn.Log{Start: 8_100_977, End: 9_900_000}},
	}}
	text := planText(s, c, at.Add(4*time.Hour))
	require.Contains(t, text, "Snapshot 20261125T030000Z-abcdefgh, begun 4h0m0s ago, at 2026-11-25T03:00:00Z: 0 windows, 2,301,877 standings\n")
	require.Contains(t, text, "consumers are held up until they are back")
	require.Regexp(t, `points/0 +9,310,022 +9,871,300 +561,278 +9,318,104 +8,100,977`, text)
	c.Shards = 3
	require.Contains(t, planText(s, c, at), "It is of 1 shard, and goes to 3.\nRedis has nothing on shard 0 of 3,")
	c.Shards = 1
	c.Empty = nil
	require.Contains(t, planText(s, c, at), "which consumers go on with")

	all, err := json.Marshal(newReport(s, c, &flags{dryRun: true}, at.Add(time.Second)))
	require.NoError(t, err)
	require.JSONEq(t, `{"restored":false,"dry_run":true,"refused":[],"snapshot":"20261125T030000Z-abcdefgh","taken_at":"2026-11-25T03:00:00.000Z","age_ms":1000,
		"windows":0,"standings":2301877,"shards":1,"to_shards":1,"empty_shards":0,"to_read":561278,
		"partitions":[{"partition":"points/0","from":9310022,"snapshot_to":9318104,"to":9871300,"log_start":8100977,"log_end":9900000}],
		"records":null,"took_ms":null}`, string(all))
}

// What the error says to set has room for what it says is needed.
func TestTooLittleMemoryIsAnsweredWithWhatWouldDo(t *testing.T) {
	cfg := &config.Config{MaxEventBytes: 1 << 20, FoldMemory: 256 << 20}
	require.Equal(t, int64(64<<20), rowsMemory(cfg))
	err := explain(t.Context(), &rebuild.RoomError{Needs: 100 << 20, Has: rowsMemory(cfg)}, cfg, &rebuild.Result{})
	require.ErrorContains(t, err, "set fold_memory to 401MiB at least")
	cfg.FoldMemory = 401 << 20
	require.GreaterOrEqual(t, rowsMemory(cfg), int64(100<<20))
	cfg.FoldMemory = ingest.LeastMemory(cfg.MaxEventBytes)
	require.Zero(t, rowsMemory(cfg))
	require.NotContains(t, err.Error(), "%!")
}
