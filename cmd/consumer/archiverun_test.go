package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/test/clitest"
)

// past returns a final window of ten days ago on three shards, a window of this week, and an empty archive.
func past(t *testing.T, url string) (w *clitest.Standings, closed, live periods.Window) {
	t.Helper()
	w = clitest.StandingsIn(t, 3, 0)
	w.Environ = append(w.Environ, "STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL="+url)
	var err error
	closed, err = w.Reader.Calendar.At(periods.Weekly, time.Now().AddDate(0, 0, -10).UnixMilli())
	require.NoError(t, err)
	live, err = w.Reader.Calendar.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(t, err)
	for i := range 30 {
		at := func(window periods.Window) string {
			return time.UnixMilli(window.Start + int64(i)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		w.AddTo(t, closed.Name, "global", clitest.Member(fmt.Sprint("m", i), int64(i), at(closed)))
		w.AddTo(t, live.Name, "global", clitest.Member(fmt.Sprint("m", i), int64(i), at(live)))
	}
	seal(t, w)
	return w, closed, live
}

func seal(t *testing.T, w *clitest.Standings) {
	t.Helper()
	all := boards.Together(w.Shards)
	due, err := all.Due(t.Context(), time.Now(), time.Now(), func(ledger.Window) (time.Duration, bool) { return time.Hour, true }, 0)
	require.NoError(t, err)
	sealed, err := all.Seal(t.Context(), map[ledger.Partition]int64{{Topic: "points"}: 1}, due)
	require.NoError(t, err)
	require.NotEmpty(t, sealed.Final)
}

// archiveReport is the JSON of archive run.
type archiveReport struct{ Final, Backups json.RawMessage }

func archiveRun(t *testing.T, w *clitest.Standings, args ...string) (code int, r archiveReport, stderr string) {
	t.Helper()
	code, stdout, stderr := execute(t, w.Environ, append([]string{"archive", "run", "--json"}, args...)...)
	if stdout != "" {
		require.NoError(t, json.Unmarshal([]byte(stdout), &r), stdout)
	}
	return code, r, stderr
}

// The reason for reopening gets from the command to the database.
func TestARunTakesWhatIsFinalWithWhyItWasReopened(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	w, closed, _ := past(t, url)
	code, r, stderr := archiveRun(t, w)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "null", string(r.Backups))
	require.JSONEq(t, `{"taken":1,"rows":30,"waiting":0,"not_final":0}`, string(r.Final))

	const why = "case 12: a server's events came 3 days late"
	code, _, stderr = execute(t, w.Environ, "reopen", "global", "weekly", closed.Name, "--for", "0s", "--reason", why)
	require.Equal(t, 0, code, stderr)
	code, r, stderr = archiveRun(t, w)
	require.Equal(t, 0, code, stderr)
	require.JSONEq(t, `{"taken":0,"rows":0,"waiting":0,"not_final":1}`, string(r.Final))
	seal(t, w)
	code, _, stderr = archiveRun(t, w)
	require.Equal(t, 0, code, stderr)

	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for revision, want := range map[int64]string{1: "", 2: why} {
		copied, err := s.Revision(t.Context(), "global", "weekly", closed.Name, revision)
		require.NoError(t, err)
		require.Equal(t, want, copied.ReopenedWhy)
		require.EqualValues(t, 99_999_999, copied.MaxPoints)
	}
	_, stdout, _ := execute(t, w.Environ, "archive", "list", "--json")
	require.Contains(t, stdout, why)
}

func TestARunTakesBackupsOfCompleteWindows(t *testing.T) {
	w, _, live := past(t, "sqlite:"+filepath.Join(t.TempDir(), "archive.db"))
	code, r, stderr := archiveRun(t, w, "--live")
	require.Equal(t, 0, code, stderr)
	require.JSONEq(t, `{"taken":1,"rows":30,"waiting":0,"not_final":0}`, string(r.Final))
	require.JSONEq(t, `{"taken":1,"rows":30,"incomplete":0,"waiting":0}`, string(r.Backups))
	_, stdout, _ := execute(t, w.Environ, "archive", "list")
	require.Regexp(t, `weekly  `+live.Name+`  backup .* 30\n`, stdout)

	for _, s := range w.Shards {
		require.NoError(t, w.Reader.Client.HSet(t.Context(), s.Keys().Origin(), "points/0", ledger.Origin{Offset: 1, Time: live.Start + 1}.String()).Err())
	}
	code, stdout, _ = execute(t, w.Environ, "archive", "run", "--live")
	require.Equal(t, 0, code)
	require.Equal(t, "0 final windows taken, 0 rows\n0 backups taken, 0 rows; 1 window not complete\n", stdout)
}

func TestARunLeavesTheArchiveToWhoeverLeads(t *testing.T) {
	w, _, _ := past(t, "sqlite:"+filepath.Join(t.TempDir(), "archive.db"))
	_, err := w.Store.Lead(t.Context(), "a replica", 0, time.Minute)
	require.NoError(t, err)
	code, _, stderr := archiveRun(t, w, "--wait", "0s")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "another process is the leader, a replica")

	// If the leader died, the command waits for its lease to expire.
	_, err = w.Store.Lead(context.WithoutCancel(t.Context()), "a replica", 0, 2*time.Second)
	require.NoError(t, err)
	code, r, stderr := archiveRun(t, w)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, string(r.Final), `"taken": 1,`)
	_, err = w.Store.Lead(t.Context(), jobs.NewOwner(), 0, time.Minute)
	require.NoError(t, err, "it has let go of the lease")
}
