package testenv

// A disk that is soon full.

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// SmallDisk gives a directory on a file system of its own with room for so many bytes, which goes with the
// test. An error says why there is none here: to mount one takes root, and a Linux.
func SmallDisk(t testing.TB, bytes int64) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0700", bytes), "standings-test", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount a small disk: %w: %s", err, strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() {
		// At once, whoever still has a file of it open.
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount %s: %v: %s", dir, err, out)
		}
	})
	return dir, nil
}
