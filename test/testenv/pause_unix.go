//go:build unix && !linux

package testenv

import (
	"syscall"

	"github.com/standings/standings/internal/embedded/child"
)

func pause(p *child.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *child.Process) error { return p.Signal(syscall.SIGCONT) }
