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

// published adds a sending that an event publishes at a step.
func (p *plan) published(step int, s sending) {
	p.events = append(p.events, fault{at: step, kind: publish, n: len(p.sendings)})
	p.sendings = append(p.sendings, s)
}

// startsAgain is a plan of a first start that is lost before all shards have it. The number chooses when.
func startsAgain(number int) *plan {
	step := 40 + 4*number
	p := small()
	p.setup.Start, p.setup.Shards, p.setup.Masters = starts.FromLatest, 4, 4
	p.events = []fault{{at: step, kind: rollback, n: 0}, {at: 1, kind: masterFull, n: 1}}
	p.published(step-2, p.sendings[0])
	return p
}

// One master goes back while another one is full, so that all shards lack the start that was written. Events have come
// since it was resolved.
func TestAFirstStartThatIsRepeatedSkipsNothing(t *testing.T) {
	back := 0
	for n := range 30 {
		w := holds(t, startsAgain(n))
		back += w.counts[rollback]
		if len(w.resolved) != 2 { // an origin for each partition
			t.Errorf("number %d: starts are %v", n, w.resolved)
		}
	}
	if back < 10 {
		t.Errorf("a master went back %d times", back)
	}
}

// Redis's clock is behind the producers' as a start is resolved, and jumps before the last shard copies it.
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

// The window 1999-12-17 has lived until 2000-01-01 as an event of it comes, and lives again once the clock goes back.
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

// The ledger that a worker reads may be of a Redis that has gone back since the worker hid a member.
func TestAMemberWhoIsBannedIsHiddenAgainBeforeAWorkerCountsInARedisThatWentBack(t *testing.T) {
	for step := 84; step < 96; step++ {
		for n := 256; n < 256+fewer(12); n++ { // connections stay
			p := small()
			p.setup.Bans, p.setup.BansLag = true, 3*time.Millisecond
			p.events = []fault{{at: 40, kind: erases}, {at: 79, kind: slow, on: "state", n: 900}, {at: 80, kind: rebalance}, {at: step, kind: rollback, n: n}}
			holds(t, p)
		}
	}
}

// The log begins behind the first event of the member by then: a rebuild keeps the year.
func TestAnEventThatWasRefusedCountsInTheWindowsThatARebuildReplaces(t *testing.T) {
	p := small()
	p.setup.Partitions, p.setup.Periods = 1, []string{"daily", "yearly"}
	one := func(user string, points int, since time.Duration) sending {
		at := beginning.Add(since).UnixMilli()
		return sending{records: []record{{time: at, value: fmt.Appendf(nil, `{"user_id":%q,"points":%d,"occurred_at":%d}`, user, points, at)}}}
	}
	p.sendings, p.first = []sending{one("over1", 600, -27*time.Hour)}, 1
	p.published(20, one("u", 1, 90*time.Minute)) // from after Redis's clock: retention leaves it
	p.published(30, one("over1", 600, -4*time.Hour))
	p.events = append(p.events, fault{at: 105, kind: truncate}, fault{at: 117, kind: rebuilds})
	if w := holds(t, p); w.counts[refusedSome] == 0 {
		t.Error("no event is refused in one of its windows")
	}
}

// Kafka does not find records without a time by time.
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
