package archive

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// fixture is a window that can become final, and an archive.
type fixture struct {
	*finaltest.World

	t       *testing.T
	archive *store.Store
	path    string
}

func newFixture(t *testing.T, of ledger.Shards, rule string) *fixture {
	t.Helper()
	f := &fixture{World: finaltest.New(t, of, rule), t: t, path: filepath.Join(t.TempDir(), "archive.db")}
	f.archive = f.open()
	require.NoError(t, f.archive.Migrate(t.Context()))
	return f
}

func (f *fixture) open() *store.Store {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), "sqlite:"+f.path)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, s.Close()) })
	return s
}

// archiver returns an archiver with small pages.
func (f *fixture) archiver(progress func(Progress)) *Archiver {
	a := New(Config{
		Boards: f.Boards, Store: f.archive, Lateness: finaltest.Always, Zone: finaltest.Zone, Fields: f.Fields,
		Progress: progress, Log: zaptest.NewLogger(f.t),
	})
	a.pages, a.append = 10, 30
	return a
}

// archived returns a revision and its rows in the archive.
func (f *fixture) archived(revision int64) (store.Window, []store.Row) {
	f.t.Helper()
	windows, err := f.archive.Windows(f.t.Context(), store.Filter{Board: f.Board, Period: "weekly", Name: f.Window.Name, All: true}, store.Place{}, 10)
	require.NoError(f.t, err)
	for _, w := range windows {
		if w.Revision == revision && w.State == store.Whole {
			var all []store.Row
			for row, err := range f.archive.Each(f.t.Context(), w.ID) {
				require.NoError(f.t, err)
				all = append(all, row)
			}
			require.NoError(f.t, f.archive.Verify(f.t.Context(), w.ID))
			return w, all
		}
	}
	return store.Window{}, nil
}

func fence(token int64) store.Fence {
	return store.Fence{Token: token, Owner: strconv.FormatInt(token, 10)}
}
