package harness

// A consumer that is caught in the middle of a sweep, and one that dies there.

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
)

// Sweep says which sweep of the first partition is to be caught.
type Sweep struct {
	// Start starts a consumer that is to die: again where one was through with its sweep
	// before it did.
	Start func() *Consumer
	// More are records for another sweep, published where the consumer has caught up before
	// one was seen: how fast a machine is decides nothing then.
	More func() []*kgo.Record
	// Seen is called while a consumer is in a sweep; by false it goes on for now. nil:
	// the first look that sees one is enough.
	Seen func() bool
}

// CatchSweep returns as soon as a consumer that runs is in the middle of a sweep.
func (p *Place) CatchSweep(t testing.TB, within time.Duration, s Sweep) {
	t.Helper()
	p.catchSweep(t, time.Now().Add(within), "", s)
}

// KillInSweep kills a consumer in the middle of a sweep that has got on since it was started.
// It returns the position that the ledger is left at: no late call moves it any more.
func (p *Place) KillInSweep(t testing.TB, within time.Duration, s Sweep) ledger.Position {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		before := p.Ledger(t)[0]
		c := s.Start()
		p.catchSweep(t, deadline, before, s)
		c.Kill()
		<-c.Done()
		// What the dead one had sent was there before the first of these reads was sent, so it
		// is executed before the second one at the latest.
		p.Ledger(t)
		if at, ok := sweeping(p.Ledger(t)[0]); ok {
			return at
		}
	}
}

// catchSweep waits until the ledger is within a sweep, and elsewhere than before.
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
