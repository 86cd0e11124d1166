//go:build unix

package testenv

import (
	"syscall"
	"testing"

	"github.com/standings/standings/internal/embedded/child"
)

func pause(t testing.TB, p *child.Process) {
	t.Helper()
	signal(t, p, syscall.SIGSTOP)
}

func resume(t testing.TB, p *child.Process) {
	t.Helper()
	signal(t, p, syscall.SIGCONT)
}

func signal(t testing.TB, p *child.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}
