package harness

// This file runs a consumer as an operator does: a process with an environment, a log, signals and an exit
// code.

import (
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

// Consumer is one process of `consumer run`.
type Consumer struct {
	Number int // among those started at this place, from 1
	Log    *Log

	process *child.Process
	killed  bool
}

// Start starts a consumer with the place's settings and additional ones. It does not wait for anything. The
// consumer is killed at the test's end if it is still running.
func (p *Place) Start(t testing.TB, settings ...map[string]string) *Consumer {
	t.Helper()
	all := maps.Clone(p.Settings)
	for _, s := range settings {
		maps.Copy(all, s)
	}
	return p.start(t, all)
}

// start starts a consumer with these settings and additional environment variables.
func (p *Place) start(t testing.TB, settings map[string]string, variables ...string) *Consumer {
	t.Helper()
	cmd := exec.Command(Binary(t), "run")
	cmd.Env = append(p.Environment(settings), variables...)
	c := &Consumer{Log: newLog()}
	cmd.Stdout, cmd.Stderr = c.Log, c.Log
	cmd.WaitDelay = 5 * time.Second
	process, err := child.Start(cmd, "")
	if err != nil {
		t.Fatal(err)
	}
	c.process = process
	p.mu.Lock()
	p.consumers = append(p.consumers, c)
	c.Number = len(p.consumers)
	p.mu.Unlock()
	t.Cleanup(func() {
		c.process.Kill()
		if t.Failed() {
			t.Logf("consumer %d (pid %d) ended with %s; its log ends with:\n%s", c.Number, c.process.Pid(), c.ended(), c.Log.Tail(30))
		}
	})
	return c
}

// Environment returns the environment of a command of the consumer at this place, with settings by their
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
	maps.Copy(all, settings)
	var environment []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STANDINGS_") {
			environment = append(environment, v)
		}
	}
	for key, value := range all {
		environment = append(environment, variable(key)+"="+value)
	}
	return environment
}

// variable returns the environment variable of a setting.
func variable(key string) string {
	return "STANDINGS_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(key))
}

// alive returns a description if all consumers have ended, because then waiting for one is useless; empty
// otherwise.
func (p *Place) alive() string {
	all := p.Consumers()
	for _, c := range all {
		if c.Running() {
			return ""
		}
	}
	if len(all) == 0 {
		return "no consumer was started"
	}
	last := all[len(all)-1]
	return fmt.Sprintf("no consumer runs any more; the last ended with %s:\n%s", last.ended(), last.Log.Tail(5))
}

// Signal sends a signal: SIGTERM, SIGINT, SIGSTOP to pause, SIGCONT to continue. It sends a terminating
// signal only after the process has written a log line: a process that does not listen to signals yet would
// die.
func (c *Consumer) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if s == syscall.SIGTERM || s == syscall.SIGINT {
		Eventually(t, exitWithin, func() string {
			if len(c.Log.Lines()) == 0 && c.Running() {
				return fmt.Sprintf("consumer %d has written nothing yet", c.Number)
			}
			return ""
		})
	}
	if err := c.process.Signal(s); err != nil {
		t.Fatalf("consumer %d: %v", c.Number, err)
	}
}

// Pid returns the process's id.
func (c *Consumer) Pid() int { return c.process.Pid() }

// Done is closed when the process has ended.
func (c *Consumer) Done() <-chan struct{} { return c.process.Done() }

// Running reports whether the process is still running.
func (c *Consumer) Running() bool {
	select {
	case <-c.process.Done():
		return false
	default:
		return true
	}
}

// Kill kills the process, as kill -9 does.
func (c *Consumer) Kill() {
	c.killed = true
	c.process.Kill()
}

// AwaitExit waits until the process ends by itself and returns its exit code: 128 + the signal's number if
// a signal ended it.
func (c *Consumer) AwaitExit(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-c.process.Done():
	case <-time.After(within):
		if !c.Running() { // both happened while this process was suspended
			break
		}
		t.Fatalf("consumer %d still runs after %v", c.Number, within)
	}
	return c.code()
}

func (c *Consumer) code() int {
	err := c.process.Err()
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

func (c *Consumer) ended() string { return fmt.Sprintf("code %d", c.code()) }

// exitWithin is the limit for a graceful end: the default shutdown_timeout is 10 s, and the machine may be
// slow.
const exitWithin = time.Minute

// Terminate sends SIGTERM, and fails the test unless the process ends in time with exit code 0. It returns
// the counts in its last line.
func (c *Consumer) Terminate(t testing.TB) Counts {
	t.Helper()
	c.Signal(t, syscall.SIGTERM)
	if code := c.AwaitExit(t, exitWithin); code != 0 {
		t.Fatalf("consumer %d ended with code %d after SIGTERM", c.Number, code)
	}
	counts, ok := c.Log.Counts()
	if !ok {
		t.Fatalf("consumer %d ended without a line that says what it counted", c.Number)
	}
	return counts
}

// TerminateAll terminates every running consumer of the place.
func (p *Place) TerminateAll(t testing.TB) {
	t.Helper()
	for _, c := range p.Consumers() {
		if c.Running() {
			c.Terminate(t)
		}
	}
}

// Consumers returns all consumers that were started, including ended ones.
func (p *Place) Consumers() []*Consumer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Consumer(nil), p.consumers...)
}
