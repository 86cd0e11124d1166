package simulate

// Small plans for faults that worlds have found. A seed leads to another world as soon as the
// drawing of plans changes; these plans stay the same.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"
)

// small returns a plan with some records in each of two partitions and without faults.
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

// A worker dies during a piece that writes the first entries of some windows. A rebuild that begins at
// the ledger's position doesn't contain these windows. What the piece left in them must not
// disturb later processes.
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

// A start that dies must not leave only some of its partitions in the ledger. Otherwise the next start
// would treat the others as added partitions and begin them at offset 0.
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

// published adds a sending and an event that publishes it at the step.
func (p *plan) published(step int, s sending) {
	p.events = append(p.events, fault{at: step, kind: publish, n: len(p.sendings)})
	p.sendings = append(p.sendings, s)
}

// startsAgain returns a plan in which a first start is lost before all shards have it. number chooses the
// step.
func startsAgain(number int) *plan {
	step := 40 + 4*number
	p := small()
	p.setup.Start, p.setup.Shards, p.setup.Masters = starts.FromLatest, 4, 4
	p.events = []fault{{at: step, kind: rollback, n: 0}, {at: 1, kind: masterFull, n: 1}}
	p.published(step-2, p.sendings[0])
	return p
}

// One master goes back while another one is full, so that no shard has the written start any more. Events
// have arrived since the start was resolved.
func TestAFirstStartThatIsRepeatedSkipsNothing(t *testing.T) {
	back := 0
	for n := range 30 {
		w := holds(t, startsAgain(n))
		back += w.counts[rollback]
		if len(w.resolved) != 2 { // one origin for each partition
			t.Errorf("number %d: starts are %v", n, w.resolved)
		}
	}
	if back < 10 {
		t.Errorf("a master went back %d times", back)
	}
}

// Redis's clock is behind the producers' clocks when a start is resolved. It jumps forward before the
// last shard copies the start.
func TestAShardThatCopiesAStartPromisesWhatTheFirstOneDid(t *testing.T) {
	for step := 6; step < 40; step++ {
		p := small()
		p.setup.Start, p.setup.Shards = starts.FromLatest, 3
		p.events = []fault{{kind: clock, n: 10_200}, {at: step, kind: clock, n: 21_500}}
		s := sending{partition: 0}
		for i := range 8 {
			at := beginning.UnixMilli()
			s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"n%d","points":1,"occurred_at":%d}`, i, at)})
		}
		p.published(0, s)
		holds(t, p)
	}
}

// The retention of the window 1999-12-17 ends at 2000-01-01, before its event arrives. When the clock
// goes back, the window is within its retention again.
func TestAnEventOfAWindowWhoseLifeIsOverDoesNotCountWhenTheClockGoesBack(t *testing.T) {
	p := small()
	p.setup.Periods = []string{"daily"}
	at := beginning.Add(-14*day - 12*time.Hour).UnixMilli()
	p.events = []fault{{at: 80, kind: clock, n: 3600}}
	p.published(1, sending{records: []record{{time: at, value: fmt.Appendf(nil, `{"user_id":"u","points":1,"occurred_at":%d}`, at)}}})
	w := holds(t, p)
	if w.counts[livesAgain] == 0 {
		t.Error("no window lives again")
	}
}

// Redis may go back after a worker has hidden a member. The worker then reads a ledger that doesn't
// contain the ban.
func TestAMemberWhoIsBannedIsHiddenAgainBeforeAWorkerCountsInARedisThatWentBack(t *testing.T) {
	for step := 84; step < 96; step++ {
		for n := 256; n < 256+fewer(12); n++ { // from 256 on, connections stay open
			p := small()
			p.setup.Bans, p.setup.BansLag = true, 3*time.Millisecond
			p.events = []fault{{at: 40, kind: erases}, {at: 79, kind: slow, on: "state", n: 900}, {at: 80, kind: rebalance}, {at: step, kind: rollback, n: n}}
			holds(t, p)
		}
	}
}

// When the rebuild runs, the log no longer contains the member's first event. The rebuild replaces
// the daily windows and keeps the yearly one.
func TestAnEventThatWasRefusedCountsInTheWindowsThatARebuildReplaces(t *testing.T) {
	p := small()
	p.setup.Partitions, p.setup.Periods = 1, []string{"daily", "yearly"}
	one := func(user string, points int, since time.Duration) sending {
		at := beginning.Add(since).UnixMilli()
		return sending{records: []record{{time: at, value: fmt.Appendf(nil, `{"user_id":%q,"points":%d,"occurred_at":%d}`, user, points, at)}}}
	}
	p.sendings, p.first = []sending{one("over1", 600, -27*time.Hour)}, 1
	p.published(20, one("u", 1, 90*time.Minute)) // its time is ahead of Redis's clock, so that retention keeps it
	p.published(30, one("over1", 600, -4*time.Hour))
	p.events = append(p.events, fault{at: 105, kind: truncate}, fault{at: 117, kind: rebuilds})
	if w := holds(t, p); w.counts[refusedSome] == 0 {
		t.Error("no event is refused in one of its windows")
	}
}

// Kafka's lookup by time does not find records without a timestamp.
func TestAStartByTimeLeavesOutRecordsWithoutATimeThatLieBeforeIt(t *testing.T) {
	p := small()
	p.setup.Start, p.setup.StartTime = starts.FromTime, beginning.Add(-30*time.Minute).UnixMilli()
	p.sendings = append(p.sendings, sending{records: []record{{value: fmt.Appendf(nil, `{"user_id":"u","points":1,"occurred_at":%d}`, beginning.UnixMilli())}}})
	p.first++
	w := holds(t, p)
	if at := w.shards[0].starts[0]; at != 17 {
		t.Errorf("partition 0 begins at offset %d", at)
	}
}

// Redis loses the ledger while a worker adds a partition to it. If the worker wrote that partition
// alone, the next start would treat all others as added ones, too.
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

// A start needs only the first record of a log. The fetch response must not be larger than its limit:
// otherwise the start would report these small batches as too large.
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

// An event in no live window doesn't store its name, even if the same member has other events in the
// batch that count in live windows.
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
