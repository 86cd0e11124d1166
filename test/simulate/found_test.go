package simulate

// What worlds have found, as small plans of its own: seeds come to other worlds as soon as
// anything is drawn otherwise.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"
)

// small is a plan with some records in each of two partitions, and no faults.
func small() *plan {
	p := &plan{seed: 1, setup: setup{
		Partitions: 2, Zone: "UTC", WeekStart: "monday", Periods: []string{"weekly", "yearly"}, Layout: "readable", MaxPoints: 1000,
		FetchBytes: 4 << 10, Start: starts.FromEarliest, Processes: []size{{foldMemory: 32 << 20, pieceTime: 320 * time.Microsecond}},
	}}
	at := beginning.Add(-time.Hour).UnixMilli()
	for i := range 4 {
		s := sending{partition: i % 2}
		for j := range 8 {
			s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"u%d","points":%d,"occurred_at":%d,"board":["eu","us"]}`, j+i, j+1, at-int64(j))})
		}
		p.sendings = append(p.sendings, s)
	}
	p.first = len(p.sendings)
	return p
}

func holds(t *testing.T, p *plan) *world {
	t.Helper()
	w := live(t, p)
	if w.failed != "" {
		t.Errorf("%v: %s\n  %s", p.events, w.failed, strings.Join(w.story, "\n  "))
	}
	return w
}

// A rebuild that begins where the ledger stands has nothing of the windows that the piece
// was the first to write: what it left there mustn't be in anybody's way.
func TestARebuildSettlesAPieceThatDiedAtAnyOfItsWrites(t *testing.T) {
	torn := 0
	for n := range 12 {
		p := small()
		p.events = []fault{{kind: dies, on: "apply", n: n}}
		torn += holds(t, p).counts["the operator rebuilds a torn shard"]
	}
	if torn < 5 {
		t.Errorf("%d of the pieces were torn", torn)
	}
}

// With some of its partitions in the ledger, the others would be taken for ones that were
// added, and begin at offset 0.
func TestAStartThatDiedAtAnyOfItsWritesIsWrittenAgain(t *testing.T) {
	died := 0
	for n := range 8 {
		p := small()
		p.setup.Start = starts.FromLatest
		p.events = []fault{{kind: dies, on: "begin", n: n}}
		w := holds(t, p)
		died += w.counts[dies+": begin"]
		for partition, at := range w.shards[0].starts {
			if at != 16 {
				t.Errorf("dying at write %d: partition %d begins at offset %d", n+1, partition, at)
			}
		}
	}
	if died < 3 {
		t.Errorf("%d of the starts died", died)
	}
}

// Who adds a partition to a ledger that was lost in that moment would have it stand alone,
// and the others be taken for added ones, too.
func TestARedisThatIsLostWhileAPartitionIsAddedIsStartedAnew(t *testing.T) {
	lost := 0
	for step := 20; step < 90; step++ {
		p := small()
		p.events = []fault{{at: 15, kind: grow}, {at: step, kind: wipe, n: 1 << 8}}
		lost += holds(t, p).counts[wipe]
	}
	if lost < 30 {
		t.Errorf("Redis was lost %d times", lost)
	}
}

// Its first record is all that a start wants of a log: a response is never larger than
// what one is allowed, or its batches, which are small, would be called too large.
func TestALogOfManyBatchesBeginsInASmallMemory(t *testing.T) {
	p := small()
	p.setup.Partitions, p.setup.Processes[0].foldMemory = 1, 256<<10
	for i := range p.sendings {
		s := &p.sendings[i]
		s.partition = 0
		for j := range s.records {
			s.records[j].value = bytes.Replace(s.records[j].value, []byte(`"u`), []byte(`"`+strings.Repeat("u", 200)), 1)
		}
	}
	p.sendings = slices.Repeat(p.sendings, 3)
	p.first = len(p.sendings)
	holds(t, p)
}

// An event whose windows are over names no member, also where the member's other events in the batch
// count in windows that live.
func TestAnEventWhoseWindowsAreOverNamesNobody(t *testing.T) {
	p := small()
	p.setup.Periods, p.setup.Names = []string{"daily"}, true
	at := beginning.Add(-time.Hour).UnixMilli()
	past := at - retention["daily"].Milliseconds() - 3*day.Milliseconds()
	p.sendings = []sending{{records: []record{
		{time: past, value: fmt.Appendf(nil, `{"user_id":"u1","points":1,"name":"Ada","occurred_at":%d}`, past)},
		{time: at, value: fmt.Appendf(nil, `{"user_id":"u1","points":1,"occurred_at":%d}`, at)},
	}}}
	p.first = len(p.sendings)
	holds(t, p)
}
