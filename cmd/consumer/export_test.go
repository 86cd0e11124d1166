package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/clitest"
)

// newExported has 2100-W10 in Redis and 2026-W10 only in the archive, with 2,500 members each.
func newExported(t *testing.T) *clitest.Standings {
	t.Helper()
	w := clitest.StandingsIn(t, 2, 0)
	path := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	w.Environ = append(w.Environ, "STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL="+path)
	var members []ledger.Member
	var rows []store.Row
	window, err := new(periods.BuiltIn(periods.Weekly, w.Reader.Calendar)).Named("2026-W10")
	require.NoError(t, err)
	for i := range 2500 {
		members = append(members, clitest.Member(fmt.Sprintf("m%04d", i), int64(2500-i), "2100-03-09T08:15:30.123Z"))
		r := store.Row{Place: int64(i + 1), Rank: int64(i + 1), Member: fmt.Sprintf("p%04d", i), Score: float64(2500 - i), ReachedAt: window.Start}
		r.Tuple[0] = int64(2500 - i)
		rows = append(rows, r)
	}
	for from := 0; from < len(members); from += 500 {
		w.Add(t, "global", members[from:from+500]...)
	}
	s, err := store.Open(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Migrate(t.Context()))
	writing, err := s.Begin(t.Context(), store.Fence{Token: 1, Owner: "tests"}, store.Window{
		Board: "global", Period: "weekly", Name: "2026-W10", Start: time.UnixMilli(window.Start), End: time.UnixMilli(window.End), Revision: 1,
		AsOf: time.UnixMilli(window.End), SealedAt: time.UnixMilli(window.End), Zone: "UTC", Tick: 10 * time.Millisecond, Members: 2500,
	})
	require.NoError(t, err)
	require.NoError(t, writing.Append(t.Context(), rows))
	require.NoError(t, writing.Finish(t.Context()))
	return w
}

func exports(t *testing.T, w *clitest.Standings, args ...string) (code int, lines []string, stderr string) {
	t.Helper()
	code, stdout, stderr := execute(t, w.Environ, append([]string{"export"}, args...)...)
	return code, strings.Split(strings.TrimSuffix(stdout, "\n"), "\n"), stderr
}

func TestAWindowIsExportedFromRedisOrTheArchive(t *testing.T) {
	w := newExported(t)
	for window, first := range map[string]string{"2100-W10": "m", "2026-W10": "p"} {
		code, lines, stderr := exports(t, w, "global", "weekly", window)
		require.Equal(t, 0, code, stderr)
		require.Len(t, lines, 2501)
		for i, line := range lines[:2500] {
			require.Contains(t, line, fmt.Sprintf(`{"rank":%d,"member":"%s%04d","points":%d,`, i+1, first, i, 2500-i))
		}
		require.Contains(t, lines[2500], `{"end":true,"rows":2500,`)
		require.Equal(t, window == "2026-W10", strings.Contains(lines[2500], `"state":"archived"`))

		code, lines, stderr = exports(t, w, "global", "weekly", window, "--format", "csv")
		require.Equal(t, 0, code, stderr)
		require.Len(t, lines, 2501)
		require.Equal(t, "rank,member,name,points,reached_at", lines[0])
		require.True(t, strings.HasPrefix(lines[2500], "2500,"+first+"2499,,1,"), lines[2500])
	}
	w.Add(t, "eu", clitest.Member("=1+1", 5, "2100-03-09T08:15:30.123Z"))
	for first, raw := range map[string][]string{"1,'=1+1,,5,": nil, "1,=1+1,,5,": {"--raw"}} {
		code, lines, stderr := exports(t, w, append([]string{"eu", "weekly", "2100-W10", "--format", "csv"}, raw...)...)
		require.Equal(t, 0, code, stderr)
		require.True(t, strings.HasPrefix(lines[1], first), lines[1])
	}
}

func TestAllWindowsAreExportedEachOnceWithALastLine(t *testing.T) {
	w := newExported(t)
	for _, args := range [][]string{{"global"}, {"global", "weekly"}, {"--all"}} {
		code, lines, stderr := exports(t, w, args...)
		require.Equal(t, 0, code, stderr)
		require.Len(t, lines, 5003)
		require.Contains(t, lines[0], `{"board":"global","period":"weekly","window":"2100-W10","rank":1,"member":"m0000"`)
		require.Contains(t, lines[2501], `"window":"2026-W10","rank":1,"member":"p0000"`)
		require.Equal(t, `{"done":true,"windows":2,"rows":5000}`, lines[5002])
	}
	code, lines, stderr := exports(t, w, "--all", "--format", "csv")
	require.Equal(t, 0, code, stderr)
	require.Len(t, lines, 5001)
	require.Equal(t, "board,period,window,rank,member,name,points,fields,reached_at", lines[0])
	require.True(t, strings.HasPrefix(lines[5000], "global,weekly,2026-W10,2500,p2499,,1,,"), lines[5000])
}

func TestAFileIsThereOnlyOnceItIsComplete(t *testing.T) {
	w := newExported(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "all.csv")
	code, _, stderr := exports(t, w, "global", "--output", file, "--format", "csv")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stderr, "exported 5,000 rows of 2 windows to "+file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 5001, strings.Count(string(text), "\n"))
	code, _, stderr = exports(t, w, "global", "--output", file)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "exists already")

	// Redis lost a key: the incomplete output must not become a file.
	require.NoError(t, w.Reader.Client.Del(t.Context(), w.Shards[1].Keys().Listed("global:weekly:2100-W10")).Err())
	code, _, stderr = exports(t, w, "global", "--output", filepath.Join(dir, "lost"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "; the export is incomplete")
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestWhatThereIsNotIsAnError(t *testing.T) {
	w := newExported(t)
	for want, args := range map[string][]string{
		"no event was counted in":  {"global", "weekly", "2099-W01"},
		"the board eu has no such": {"eu"},
		"consumer export requires BOARD [PERIOD [WINDOW]] or --all, not": {},
		"--all excludes arguments":                                       {"global", "--all"},
		"--format must be ndjson or csv":                                 {"global", "--format", "xml"},
		"--raw requires --format csv; NDJSON is always exact":            {"global", "--raw"},
		"--output: ": {"global", "--output", "/nowhere/at/all"},
	} {
		code, _, stderr := exports(t, w, args...)
		require.NotEqual(t, 0, code, args)
		require.Contains(t, stderr, want, args)
	}
	away := append(w.Environ[:len(w.Environ):len(w.Environ)], "STANDINGS_ARCHIVE_URL=sqlite:/nowhere/archive.db")
	code, _, stderr := execute(t, away, "export", "global", "weekly", "2026-W10")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "read the archive")
	code, _, stderr = execute(t, away, "export", "global", "weekly", "2100-W10")
	require.Equal(t, 0, code, stderr)
}
