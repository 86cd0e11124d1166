package chaos

// The end: nothing goes wrong any more and nobody publishes, all is counted, and what is
// there is held against the oracle.

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/oracle"
)

// settledWithin bounds how long the ledgers may stand still before the last events count: an open
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
	// Who is told to end between two generations has none to commit by: a last takeover
	// is waited for, whose workers commit where they start.
	found(func(t testing.TB) { w.place.AwaitCommitted(t, settledWithin) })
	found(w.recall)
	w.readers.stop()
	w.readers.mu.Lock()
	m.Reads = w.readers.reads
	m.Differences = append(m.Differences, w.readers.wrong...)
	w.readers.mu.Unlock()
	for _, s := range w.slots { // nobody starts another one in its place
		s.mu.Lock()
		s.held = true
		s.mu.Unlock()
	}
	found(w.place.TerminateAll)
	m.Differences = append(m.Differences, w.compare()...)
	w.sum(m)
}

// compare holds all that there is against the oracle, once nobody changes it any more.
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

// replay gives the oracle what Kafka holds, read by another client than the consumer's,
// and sees that it is what producers were told: all that was committed is there, as it
// was sent, and nothing that was aborted.
func (w *world) replay(t testing.TB, m *ModeReport) {
	t.Helper()
	p := w.producers.published
	seen := map[oracle.At]bool{}
	sealed := w.newEarly(t)
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
		case known:
			sealed.see(r, given.by)
		}
	})
	for at, given := range p.receipts {
		if given.fate == committed && !seen[at] {
			t.Errorf("Kafka has lost the record at %v, which it acknowledged", at)
		}
	}
	sealed.report(t)
	counts := w.place.Oracle(t).Counts()
	m.Events.Bad, m.Events.Late, m.Events.Empty = int(counts.DeadLettered()), int(counts.Late), int(counts.Skipped)
	m.Events.Repeats = int(counts.Duplicates)
}

// accounted has every consumer that ended in order account for what it consumed, and
// what was committed to Kafka be what the ledger says.
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

// sum completes the report by what consumers said and what there is.
func (w *world) sum(m *ModeReport) {
	m.Consumers = len(w.place.Consumers())
	m.Clocks = w.apart()
	m.Archive = w.archive.String()
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
