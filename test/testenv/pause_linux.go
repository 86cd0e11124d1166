package testenv

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/standings/standings/internal/embedded/child"
)

// pause stops the process and returns once all of its threads have stopped. One thread takes the signal; on a
// busy machine the other threads continue to answer requests for a while.
func pause(p *child.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WSTOPPED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD): // it has ended
			return nil
		case err != nil:
			return fmt.Errorf("wait for process %d to stop: %w", p.Pid(), err)
		default:
			return nil
		}
	}
}

func resume(p *child.Process) error { return p.Signal(syscall.SIGCONT) }
