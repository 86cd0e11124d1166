package snapshot_test

import (
	"path/filepath"
	"testing"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/archive/snapshot/filestest"
)

func TestADirectoryKeepsFiles(t *testing.T) {
	filestest.Run(t, func(t *testing.T) snapshot.Files {
		t.Helper()
		return snapshot.Dir{Path: filepath.Join(t.TempDir(), "snapshots")}
	})
}
