//go:build unix

package child

// The shell outlives the parent briefly, to clean up.

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const terminate = syscall.SIGTERM

// watchScript removes the directory twice, since the child may have been writing a file at the first rm.
const watchScript = `read -r _
kill -9 "$1" 2>/dev/null
[ -n "$2" ] || exit 0
rm -rf -- "$2" 2>/dev/null
sleep 1
rm -rf -- "$2"`

type guard struct {
	shell *exec.Cmd
	line  *os.File // nothing is written to it; it closes when the parent dies
}

// watch starts the shell. On a machine without sh, only Kill and Stop end the child, and on Linux the kernel.
func watch(pid int, scratch string) guard {
	read, write, err := os.Pipe()
	if err != nil {
		return guard{}
	}
	defer func() { _ = read.Close() }()
	shell := exec.Command("/bin/sh", "-c", watchScript, "sh", strconv.Itoa(pid), scratch)
	shell.Stdin = read
	shell.Dir = "/" // the working directory must not be one that is to be removed
	// Its own group, so that Ctrl-C does not end the guard before the child.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		_ = write.Close()
		return guard{}
	}
	return guard{shell: shell, line: write}
}

// dismiss ends the shell before its pipe closes, since the child's process id may already belong to another
// process.
func (g guard) dismiss() {
	if g.shell == nil {
		return
	}
	_ = g.shell.Process.Kill()
	_ = g.shell.Wait() // Wait reports that it was killed
	_ = g.line.Close()
}
