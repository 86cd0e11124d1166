package store

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/archive/snapshot/filestest"
	"github.com/standings/standings/test/testenv"
)

func TestAnArchiveKeepsFilesOfSnapshots(t *testing.T) {
	for kind, url := range map[string]func(testing.TB) string{"sqlite": sqliteURL, "postgres": testenv.Postgres} {
		t.Run(kind, func(t *testing.T) {
			filestest.Run(t, func(t *testing.T) snapshot.Files {
				t.Helper()
				return Snapshots{open(t, url(t))}
			})
		})
	}
}

func TestFilesOfSnapshotsLeaveNothingBehind(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		f := Snapshots{s}
		filestest.Put(t, f, "20261125T190000Z-aaaaaaaa/shard-0", make([]byte, 3<<20))
		require.ErrorIs(t, f.Write(t.Context(), "20261125T190000Z-aaaaaaaa/shard-1", func(w io.Writer) error {
			_, _ = w.Write(make([]byte, 3<<20))
			return io.ErrClosedPipe
		}), io.ErrClosedPipe)
		require.NoError(t, f.Remove(t.Context(), "20261125T190000Z-aaaaaaaa/shard-0"))
		for _, table := range []string{"snapshot_files", "snapshot_chunks"} {
			var n int
			require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM `+table, nil, &n))
			require.Zero(t, n, table)
		}
	})
}
