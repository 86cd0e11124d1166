package harness

// This file stops a consumer in the middle of a sweep.

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
)

// Sweep selects the sweep of the first partition to catch.
type Sweep struct {
	// Start starts a consumer to kill. It is called again if the consumer finished its sweep before it
	// died.
	Start func() *Consumer
	// More returns records for another sweep. They are published if the consumer catches up before a sweep
	// was seen, so that the machine's speed does not matter.
	More func() []*kgo.Record
	// Seen is called while a consumer is in a sweep. If it returns false, the wait continues. nil: the
	// first sweep that is seen counts.
	Seen func() bool
}

// CatchSweep returns as soon as a running consumer is in the middle of a sweep.
func (p *Place) CatchSweep(t testing.TB, within time.Duration, s Sweep) {
	t.Helper()
	p.catchSweep(t, time.Now().Add(within), "", s)
}

// KillInSweep kills a consumer in the middle of a sweep that has progressed since the consumer was started.
// It returns the position at which the ledger remains: no late call moves it any more.
func (p *Place) KillInSweep(t testing.TB, within time.Duration, s Sweep) ledger.Position {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		before := p.Ledger(t)[0]
		c := s.Start()
		p.catchSweep(t, deadline, before, s)
		c.Kill()
		<-c.Done()
		// The calls of the killed process had reached Redis before the first of these reads was sent, so
		// they are executed before the second one.
		p.Ledger(t)
		if at, ok := sweeping(p.Ledger(t)[0]); ok {
			return at
		}
	}
}

// catchSweep waits until the ledger is within a sweep, at another position than before.
func (p *Place) catchSweep(t testing.TB, deadline time.Time, before string, s Sweep) {
	t.Helper()
	const lookAtLog = 50 * time.Millisecond
	next := time.Now().Add(lookAtLog)
	for ; time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text := p.Ledger(t)[0]
		if _, ok := sweeping(text); ok && text != before && (s.Seen == nil || s.Seen()) {
			return
		}
		if time.Now().Before(next) {
			continue
		}
		if wrong := p.alive(); wrong != "" {
			t.Fatalf("no sweep was seen: %s", wrong)
		}
		if p.Behind(t.Context()) == "" {
			p.Publish(t, s.More()...)
		}
		next = time.Now().Add(lookAtLog)
	}
	t.Fatalf("no sweep was seen: the ledger is at %v", p.Ledger(t))
}

// sweeping parses a ledger's text, and reports whether it is within a sweep.
func sweeping(text string) (ledger.Position, bool) {
	at, err := ledger.Parse(text)
	return at, err == nil && at.Sweeping()
}
