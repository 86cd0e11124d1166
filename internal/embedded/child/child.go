// Package child runs a server as a child process that does not outlive its parent, however the parent ends:
// an exit, a panic, a kill -9.
//
// On Linux the kernel kills the child (PR_SET_PDEATHSIG). On every Unix a small shell also waits for the
// end of a pipe that closes with the parent. It then kills the child and removes its directory.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Process is a running child. It is reaped as soon as it ends.
type Process struct {
	cmd   *exec.Cmd
	guard guard
	done  chan struct{}
	err   error
}

// Start starts cmd in a process group of its own: a Ctrl-C at the terminal is for the parent, which still
// needs its servers while it shuts down. If the parent dies while the child runs, the child is killed and
// the directory scratch, if given, is removed. Of the command's attributes only the credential is kept,
// since a server that refuses to run as root needs another user.
func Start(cmd *exec.Cmd, scratch string) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	own := attributes()
	if cmd.SysProcAttr != nil {
		own.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = own
	started := make(chan error, 1)
	go p.run(started, scratch)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run keeps one operating system thread for the lifetime of the child. The kernel ties the child to the
// thread that started it, not to the process, and would kill a healthy child when Go ends that thread.
func (p *Process) run(started chan<- error, scratch string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	p.guard = watch(p.cmd.Process.Pid, scratch)
	started <- nil
	p.err = p.cmd.Wait()
	p.guard.dismiss()
	close(p.done)
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended, once Done is closed: nil for exit code 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal. It does nothing if the child has ended.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to %s: %w", s, p.cmd.Path, err)
	}
	return nil
}

// Kill ends the child at once, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if the child has ended
	<-p.done
}

// Stop asks the child to end, kills it if it has not ended after grace, and returns when it is gone.
func (p *Process) Stop(grace time.Duration) {
	if p.cmd.Process.Signal(terminate) != nil {
		p.Kill()
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Tail returns the last lines of a log file on one line, for an error that reports why a server did not
// start.
func Tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, " | ")
}
