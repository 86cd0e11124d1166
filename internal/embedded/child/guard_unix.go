//go:build unix

package child

// The shell that outlives the parent by a moment, to clean up after it.

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const terminate = syscall.SIGTERM

// The second rm is for a file that the child was still writing.
const watchScript = `read -r _
kill -9 "$1" 2>/dev/null
[ -n "$2" ] || exit 0
rm -rf -- "$2" 2>/dev/null
sleep 1
rm -rf -- "$2"`

type guard struct {
	shell *exec.Cmd
	line  *os.File // nothing is ever written: it closes when the parent dies
}

// watch starts the shell. Without one (a machine that has no sh) the child is
// still the kernel's to kill on Linux, and Close's everywhere.
func watch(pid int, scratch string) guard {
	read, write, err := os.Pipe()
	if err != nil {
		return guard{}
	}
	defer func() { _ = read.Close() }()
	shell := exec.Command("/bin/sh", "-c", watchScript, "sh", strconv.Itoa(pid), scratch)
	shell.Stdin = read
	shell.Dir = "/" // not in a directory that somebody wants to remove
	// Its own group, so that a Ctrl-C doesn't end the guard before its charge.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		_ = write.Close()
		return guard{}
	}
	return guard{shell: shell, line: write}
}

// dismiss ends the shell before its line closes: the child's id may already be
// another process's.
func (g guard) dismiss() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // it was killed, which is what Wait would report
	_ = g.line.Close()
}
