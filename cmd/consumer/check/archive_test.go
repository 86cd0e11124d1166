package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
)

func TestWhatCheckSaysOfTheArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	cfg := &config.Config{}
	says := func(want string) {
		t.Helper()
		holds(t, judgeArchive(gatherArchive(t.Context(), cfg)), "schema", want)
	}
	says("")
	cfg.Archive.URL = "sqlite:" + path
	says("ok: …does not exist yet: the leader creates it")
	_, err := os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is made")
	s, err := app.OpenArchive(t.Context(), cfg)
	require.NoError(t, err)
	says("ok: …is empty: the leader makes its tables")
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Close())
	says("ok: …archive.db: version 5")
	cfg.Archive.URL = "mysql://db"
	says("wrong: …")
	require.NoError(t, os.WriteFile(path, []byte("no database, but long enough to be looked at as one"), 0o600))
	cfg.Archive.URL = "sqlite:" + path
	says("warning: …final windows stay in Redis until it can be opened")
}
