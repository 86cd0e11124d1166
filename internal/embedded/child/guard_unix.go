//go:build unix

package child

// The shell that briefly outlives the parent, and cleans up after it.

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const terminate = syscall.SIGTERM

// The second rm removes a file that the child was still writing.
const watchScript = `read -r _
kill -9 "$1" 2>/dev/null
[ -n "$2" ] || exit 0
rm -rf -- "$2" 2>/dev/null
sleep 1
rm -rf -- "$2"`

type guard struct {
	shell *exec.Cmd
	line  *os.File // nothing is written to it: it closes when the parent dies
}

// watch starts the shell. Without a shell (a machine that has no sh) the kernel still kills the child on
// Linux, and Close ends it everywhere.
func watch(pid int, scratch string) guard {
	read, write, err := os.Pipe()
	if err != nil {
		return guard{}
	}
	defer func() { _ = read.Close() }()
	shell := exec.Command("/bin/sh", "-c", watchScript, "sh", strconv.Itoa(pid), scratch)
	shell.Stdin = read
	shell.Dir = "/" // so that it does not block the removal of a directory
	// Its own group, so that a Ctrl-C does not end the shell before the child.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		_ = write.Close()
		return guard{}
	}
	return guard{shell: shell, line: write}
}

// dismiss kills the shell before the pipe closes: the child's process id may already belong to another
// process.
func (g guard) dismiss() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // reports only that the shell was killed
	_ = g.line.Close()
}
