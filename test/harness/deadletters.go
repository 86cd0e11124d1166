package harness

// This file deletes the dead-letter topic while consumers run.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/oracle"
)

// span is [from, to) in every partition.
type span struct{ from, to map[int]int64 }

// DeleteDeadLetters deletes the dead-letter topic, and for a while every topic that is created in its
// place. It returns how often it deleted the topic.
//
// Dead letters of events that count already are read first, and CheckDeadLetters considers them present.
// Dead letters of other events, up to the last deletion, may be deleted unseen, and are not required.
func (p *Place) DeleteDeadLetters(t testing.TB, during time.Duration) (deleted int) {
	t.Helper()
	begun := time.Now()
	lost := span{from: p.counted(t)} // before the dead letters are read
	p.kept = append(p.kept, p.DeadLetters(t)...)
	for {
		r, err := p.admin.DeleteTopics(t.Context(), p.DeadLetterTopic())
		if err == nil {
			err = r.Error()
		}
		switch {
		case err == nil:
			deleted++
		case !errors.Is(err, kerr.UnknownTopicOrPartition):
			t.Fatalf("delete %s: %v", p.DeadLetterTopic(), err)
		}
		if time.Since(begun) >= during {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	// A broker that does not know of the deletion accepts dead letters for a moment longer.
	time.Sleep(200 * time.Millisecond)
	lost.to = p.Ends(t)
	p.excused = append(p.excused, lost)
	return deleted
}

// HasDeadLetterTopic reports whether the dead-letter topic exists.
func (p *Place) HasDeadLetterTopic(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callWithin)
	defer cancel()
	topics, err := p.admin.ListTopics(ctx, p.DeadLetterTopic())
	if err != nil {
		t.Fatalf("look for %s: %v", p.DeadLetterTopic(), err)
	}
	return topics.Has(p.DeadLetterTopic())
}

// counted returns by partition the offset before which everything counts. It leaves out partitions that
// Redis does not report.
func (p *Place) counted(t testing.TB) map[int]int64 {
	t.Helper()
	all := map[int]int64{}
	positions, err := p.ledger(t.Context())
	if err != nil { // Redis is unavailable: nothing is known to count
		return all
	}
	for partition, position := range positions {
		n, err := fromOf(position)
		if err != nil {
			t.Fatal(fmt.Errorf("the ledger of partition %d: %w", partition, err))
		}
		all[partition] = n
	}
	return all
}

func (p *Place) isExcused(at oracle.At) bool {
	for _, s := range p.excused {
		if at.Offset >= s.from[at.Partition] && at.Offset < s.to[at.Partition] {
			return true
		}
	}
	return false
}

// Sweep selects the sweep of the first partition to catch.
type Sweep struct {
	// Start starts a consumer to kill. It is called again if the consumer finished its sweep before it
	// died.
	Start func() *Consumer
	// More returns records for another sweep. They are published if the consumer catches up before a sweep
	// was seen, so that the machine's speed does not matter.
	More func() []*kgo.Record
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
		if _, ok := sweeping(text); ok && text != before {
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
