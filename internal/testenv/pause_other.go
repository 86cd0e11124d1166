//go:build !unix

package testenv

import (
	"testing"

	"github.com/standings/standings/internal/embedded/child"
)

func pause(t testing.TB, _ *child.Process) {
	t.Helper()
	NotRun(t, "a process can't be paused on this system")
}

func resume(testing.TB, *child.Process) {}
