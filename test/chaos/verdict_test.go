package chaos

// This file ends a run: faults and publishing stop, everything is counted, and the result is compared with
// the oracle.

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
)

// settledWithin limits how long the ledgers may stay unchanged before the last events count: the open
// transaction of a producer that gave up ends by its timeout.
const settledWithin = 2 * time.Minute

// judge compares, and completes the report.
func (w *world) judge(m *ModeReport) {
	found := func(check func(testing.TB)) {
		m.Differences = append(m.Differences, harness.Differences(w.t, check)...)
	}
	found(func(t testing.TB) { w.meanwhile(t, m) })
	w.producers.end()
	m.Events = w.producers.published.sum()
	found(w.settle)
	found(func(t testing.TB) { w.place.AwaitCaughtUp(t, settledWithin) })
	found(func(t testing.TB) { w.finish(t, m) })
	found(func(t testing.TB) { w.replay(t, m) })
	found(func(t testing.TB) { w.place.AwaitCaughtUp(t, settledWithin) })
	// A consumer that is terminated between two generations cannot commit. So a last rebalance is awaited,
	// whose workers commit where they start.
	found(func(t testing.TB) { w.place.AwaitCommitted(t, settledWithin) })
	found(w.recall)
	for _, s := range w.slots { // so that no other consumer starts in its place
		s.mu.Lock()
		s.held = true
		s.mu.Unlock()
	}
	found(w.place.TerminateAll)
	m.Differences = append(m.Differences, w.compare()...)
	w.sum(m)
}

// compare compares everything with the oracle, once nothing changes it any more.
func (w *world) compare() []string {
	var all []string
	for _, check := range []func(testing.TB){w.nothingStays, w.place.Check, w.accounted} {
		all = append(all, harness.Differences(w.t, check)...)
	}
	return all
}

// settle waits until every transaction has ended.
func (w *world) settle(t testing.TB) {
	t.Helper()
	var wrong []string
	for deadline := time.Now().Add(settledWithin); ; {
		wrong = harness.Differences(t, func(t testing.TB) { w.place.AwaitSettled(t, nil) })
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("transactions don't end: %v", wrong)
		}
	}
}

// replay gives the oracle the content of Kafka, read by another client than the consumer's. It checks that
// the content agrees with the producers' knowledge: all committed records are there, unchanged, and no
// aborted ones.
func (w *world) replay(t testing.TB, m *ModeReport) {
	t.Helper()
	p := w.producers.published
	seen := map[oracle.At]bool{}
	w.place.EachRecord(t, w.place.Topic, func(r *kgo.Record) {
		w.place.Expect(t, r)
		m.Events.InLog++
		at := oracle.At{Partition: int(r.Partition), Offset: r.Offset}
		seen[at] = true
		given, known := p.receipts[at]
		switch {
		case known && given.fate == aborted:
			t.Errorf("Kafka shows the record at %v, whose transaction was aborted", at)
		case known && given.value != maphash.Bytes(p.seed, r.Value):
			t.Errorf("Kafka shows another record at %v than was published", at)
		}
	})
	for at, given := range p.receipts {
		if given.fate == committed && !seen[at] {
			t.Errorf("Kafka has lost the record at %v, which it acknowledged", at)
		}
	}
	counts := w.place.Oracle(t).Counts()
	m.Events.Bad, m.Events.Late, m.Events.Empty = int(counts.DeadLettered()), int(counts.Late), int(counts.Skipped)
	m.Events.Repeats = int(counts.Duplicates)
}

// accounted checks that every consumer that ended gracefully accounts for what it consumed, and that the
// offsets committed to Kafka agree with the ledger.
func (w *world) accounted(t testing.TB) {
	t.Helper()
	for _, c := range w.place.Consumers() {
		n, ok := c.Log.Counts()
		if sum := n.Sum(); ok && n.Consumed != sum {
			t.Errorf("consumer %d consumed %d, and what became of them comes to %d: %+v", c.Number, n.Consumed, sum, n)
		}
	}
	w.place.CheckCommitted(t)
}

// sum completes the report from the consumers' logs and the servers' content.
func (w *world) sum(m *ModeReport) {
	m.Consumers = len(w.place.Consumers())
	w.mu.Lock()
	m.Ended = append([]string{}, w.ended...)
	w.mu.Unlock()
	m.Halts = map[string]int{}
	generations := map[float64]bool{}
	for _, c := range w.place.Consumers() {
		for _, line := range c.Log.Lines() {
			switch line.Message {
			case "partition halted":
				m.Halts[fmt.Sprint(line.Fields["reason"])]++
			case "generation began":
				id, _ := line.Fields["generation"].(float64)
				generations[id] = true
			case "going on with a sweep":
				m.Sweeps++
			}
		}
	}
	m.Rebalances = len(generations)
	m.Differences = append(m.Differences, harness.Differences(w.t, func(t testing.TB) {
		for _, members := range w.place.Boards(t) {
			m.Boards++
			m.Standings += len(members)
		}
		for _, members := range w.place.Hidden(t) {
			m.Hidden += len(members)
		}
		m.Letters = len(w.place.DeadLetters(t))
	})...)
	if len(m.Differences)+len(m.Wrong) > 0 {
		m.Logs = w.keepLogs()
	}
}
