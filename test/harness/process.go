package harness

// This file runs commands of the consumer as an operator does: processes with an environment, output, signals and
// an exit code.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standings/standings/internal/embedded/child"
)

// Process is a command of the consumer that runs.
type Process struct {
	Log *Log         // stderr, and stdout of a command that logs
	Out bytes.Buffer // stdout of other commands; read it only after the end

	process *child.Process
}

// Begin starts a command of the consumer at this place, with additional settings. It is killed at the test's end if
// it is still running.
func (p *Place) Begin(t testing.TB, settings map[string]string, args ...string) *Process {
	t.Helper()
	r := &Process{Log: &Log{}}
	cmd := exec.Command(Binary(t), args...)
	cmd.Env = p.Environment(settings)
	cmd.Stdout, cmd.Stderr = &r.Out, r.Log
	if args[0] == "run" || args[0] == "serve" {
		cmd.Stdout = r.Log
	}
	cmd.WaitDelay = 5 * time.Second
	var err error
	if r.process, err = child.Start(cmd, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Kill()
		if t.Failed() {
			t.Logf("consumer %s (pid %d) ended with code %d; its log ends with:\n%s", args[0], r.Pid(), r.code(), r.Log.Tail(30))
		}
	})
	return r
}

// Environment returns the environment of a command of the consumer at this place, with additional settings by their
// names in the configuration. It drops inherited STANDINGS_ variables.
func (p *Place) Environment(settings map[string]string) []string {
	all := map[string]string{
		"kafka.brokers": p.Kafka.Addr(), "kafka.topics": p.joined(), "kafka.group": p.Group,
		"redis.prefix": p.Prefix, "log.format": "json",
		"listen": "127.0.0.1:0",
	}
	if p.Redis != nil {
		all["redis.addresses"] = p.Redis.Addr()
	}
	if p.Redis != nil && p.Redis.Embedded() { // miniredis does not report a maxmemory-policy, and has none
		all["redis.assume_noeviction"] = "true"
	}
	maps.Copy(all, p.Settings)
	maps.Copy(all, settings)
	var environment []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STANDINGS_") {
			environment = append(environment, v)
		}
	}
	for key, value := range all {
		name := strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(key))
		environment = append(environment, "STANDINGS_"+name+"="+value)
	}
	return environment
}

// Signal sends a signal, such as SIGSTOP to pause and SIGCONT to continue.
func (r *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := r.process.Signal(s); err != nil {
		t.Fatalf("process %d: %v", r.Pid(), err)
	}
}

// Pid returns the process's id.
func (r *Process) Pid() int { return r.process.Pid() }

// Done is closed when the process has ended.
func (r *Process) Done() <-chan struct{} { return r.process.Done() }

// Running reports whether the process is still running.
func (r *Process) Running() bool {
	select {
	case <-r.process.Done():
		return false
	default:
		return true
	}
}

// Kill kills the process, as kill -9 does.
func (r *Process) Kill() { r.process.Kill() }

// AwaitExit waits until the process ends by itself and returns its exit code: 128 + the signal's number if
// a signal ended it.
func (r *Process) AwaitExit(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-r.process.Done():
	case <-time.After(within):
		if !r.Running() { // both happened while this process was suspended
			break
		}
		t.Fatalf("process %d still runs after %v: %s", r.Pid(), within, r.Log.Tail(10))
	}
	return r.code()
}

func (r *Process) code() int {
	err := r.process.Err()
	if err == nil {
		return 0
	}
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) {
		return -1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// Said is the exit code and output of a command.
type Said struct {
	Code           int
	Stdout, Stderr string
}

// Reason returns the reason why the command ended, or "" if it is not exactly one line.
func (s Said) Reason() string {
	if reasons := Reasons(s.Stderr); len(reasons) == 1 {
		return reasons[0]
	}
	return ""
}

// Run runs a command of the consumer at this place to its end, with additional settings. A command that
// does not end in time is killed, and its code is -1.
func (p *Place) Run(t testing.TB, settings map[string]string, args ...string) Said {
	t.Helper()
	binary := Binary(t) // the first call builds it, outside the command's timeout
	ctx, cancel := context.WithTimeout(t.Context(), Within)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = p.Environment(settings)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("consumer %v: %v", args, err)
	}
	return Said{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Says is Run, and returns the exit code and all of the output.
func (p *Place) Says(t testing.TB, settings map[string]string, args ...string) (code int, said string) {
	t.Helper()
	got := p.Run(t, settings, args...)
	return got.Code, got.Stdout + got.Stderr
}

// Command runs a command to its end and returns its output. The command must succeed.
func (p *Place) Command(t testing.TB, args ...string) []byte {
	t.Helper()
	got := p.Run(t, nil, args...)
	if got.Code != 0 {
		t.Fatalf("consumer %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	return []byte(got.Stdout)
}

// Serve starts `consumer serve`, and returns the API's address once it is open.
func (p *Place) Serve(t testing.TB) string {
	t.Helper()
	r := p.Begin(t, map[string]string{"api.listen": "127.0.0.1:0"}, "serve")
	return fmt.Sprint("http://", r.Log.Await(t, time.Minute, "API's port open").Fields["address"])
}
