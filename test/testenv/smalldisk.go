package testenv

// A disk that fills up quickly.

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// SmallDisk returns a directory on its own file system, which has room for the given number of bytes and is unmounted
// when the test ends. It returns an error if it cannot mount one, which requires root and Linux.
func SmallDisk(t testing.TB, bytes int64) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0700", bytes), "standings-test", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount a small disk: %w: %s", err, strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() {
		// -l detaches the file system at once, even if a process still has a file open.
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount %s: %v: %s", dir, err, out)
		}
	})
	return dir, nil
}
