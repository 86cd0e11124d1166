package harness

// This file runs consumers.

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Consumer is one process of `consumer run`.
type Consumer struct {
	*Process

	Number int // among those started at this place, from 1
}

// Start starts a consumer with additional settings. It does not wait for anything. The consumer is killed at the
// test's end if it is still running.
func (p *Place) Start(t testing.TB, settings ...map[string]string) *Consumer {
	t.Helper()
	all := map[string]string{}
	for _, s := range settings {
		maps.Copy(all, s)
	}
	c := &Consumer{Process: p.Begin(t, all, "run")}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.consumers = append(p.consumers, c)
	c.Number = len(p.consumers)
	return c
}

// Signal sends a terminating signal only after the consumer has written a log line: a process that does not listen
// to signals yet would die.
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
	c.Process.Signal(t, s)
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
	return fmt.Sprintf("no consumer runs any more; the last ended with code %d:\n%s", last.code(), last.Log.Tail(5))
}

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
	return slices.Clone(p.consumers)
}
