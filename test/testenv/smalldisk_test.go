package testenv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASmallDiskIsSoonFullAndHasRoomAgain(t *testing.T) {
	dir, err := SmallDisk(t, 1<<20)
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(dir, "file")
	require.ErrorIs(t, os.WriteFile(file, make([]byte, 2<<20), 0o600), syscall.ENOSPC)
	require.ErrorIs(t, os.WriteFile(filepath.Join(dir, "another"), []byte("x"), 0o600), syscall.ENOSPC)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "another"), []byte("x"), 0o600))
}
