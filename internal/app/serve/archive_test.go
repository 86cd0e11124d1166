package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/test/clitest"
)

// The archive is unavailable at the start, because its directory does not exist yet. Windows in Redis are
// served, and past windows are served once the archive exists.
func TestServeStartsWithoutItsArchiveAndFindsItLater(t *testing.T) {
	w := clitest.StandingsIn(t, 1, 0)
	w.Add(t, "global", clitest.Member("u1", 5, "2026-11-16T10:00:00Z"))
	dir := filepath.Join(t.TempDir(), "later")
	url := "sqlite:" + filepath.Join(dir, "archive.db")
	s := start(t, append(w.Environ, "STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL="+url))
	at := s.api + "/v1/boards/global/periods/weekly/windows/"
	status, body := get(t, at+clitest.Window+"/standings")
	require.Equal(t, http.StatusOK, status, body)
	past := func() (int, string) { return get(t, at+"2020-W10/standings") }
	status, body = past()
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, "archive-unavailable")

	require.NoError(t, os.Mkdir(dir, 0o700))
	a, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, a.Migrate(t.Context()))
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool {
		status, body := past()
		return status == http.StatusOK && strings.Contains(body, `"has_events":false`)
	}, 20*time.Second, 50*time.Millisecond)
}
