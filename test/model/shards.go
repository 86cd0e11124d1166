package model

import "fmt"

// shardCount is the number of shards in the models from the third on.
const shardCount = 2

// shards is one setting of two shards to search: each event's member, the faults, and the broken rule.
type shards struct {
	narrator
	// members is indexed by event. Members 1 and 2 are on the first shard, 3 and 4 on the second, in the
	// order of their hashes. 0: the event changes no member.
	members []int8
	faults  shardFaults
	variant shardRule
}

// shardFaults limits how often each fault may still happen.
type shardFaults struct{ crash, rollback, wipe, death, forget, delete int8 }

// shardRule is a rule of several shards that is broken; "" breaks none.
type shardRule string

const (
	positionIgnored  shardRule = "an event counts in a shard that is past it"
	borderCrossed    shardRule = "a piece holds members of another shard"
	oneEnds          shardRule = "a batch is through once one shard is"
	allMoved         shardRule = "a look moves shards that have changes in the batch, too"
	highestCommitted shardRule = "the highest position is committed"
	readCommitted    shardRule = "what was read is committed, though a shard lags"
	highestRead      shardRule = "reading begins at the highest position"
	onePositionKept  shardRule = "where one shard went back, reading goes on where it was"
	oneLookedAt      shardRule = "a look is at the first shard alone"
	endOfAnother     shardRule = "a sweep is finished at another shard's end"
	alongUnread      shardRule = "a shard within another's sweep is moved to its end, and nothing is folded for it"
	alongBelow       shardRule = "a shard below another's sweep goes along from the sweep's beginning"
	sweepForgotten   shardRule = "of a sweep its hash is forgotten in one shard"
	tornPassed       shardRule = "a torn shard is taken for its position"
	begunAlone       shardRule = "a shard without the topic begins at the log's end, as the first one did"
	copiedLate       shardRule = "a shard without the topic copies positions that aren't origins"
	firstAgain       shardRule = "where all shards are lost, what is committed isn't asked"
	readUncommitted  shardRule = "events are read before the start is committed"
	gapUnnamed       shardRule = "a gap of one shard is skipped, and nobody says so"
)

// shard is one master's whole state, which goes back in time together.
type shard struct {
	ledger position
	torn   bool
	origin int8
	named  bool // it is recorded that events before the origin are missing
	window counts
}

// shardCall is a call to one shard: a piece, a move without events, or a start.
type shardCall struct {
	on             bool
	expected, next position
	events         set
	start          bool // it writes the origin, which is next
	named          bool
}

// shardPhase is the worker's phase.
type shardPhase uint8

const (
	knowsNothing shardPhase = iota
	starts                  // a start is on its way
	sweeps                  // it reads and applies
	drops                   // it found that a shard had moved, and waits for the answer of the other
)

// shardWorker is the memory of the partition's owner.
type shardWorker struct {
	shardPhase
	at        [shardCount]position
	read, end int8 // the batch in hand is [read, end); if end equals read there is none
	resuming  bool // some shards are still in mid-sweep
	committed bool // the start is committed
	calls     [shardCount]shardCall
}

// shardsState is one state of the whole model.
type shardsState struct {
	shards     [shardCount]shard
	older      shard // the state that one master may go back to
	olderOf    int8  // that master; -1: none
	worker     shardWorker
	late       [shardCount]shardCall // calls of a dead worker
	begin, log int8                  // the log is [begin, log)
	committed  int8                  // -1: nothing
	faults     shardFaults
	first      int8 // the latest offset at which the topic was resolved to begin
	counted    bool // some event has counted
	unknown    bool // Kafka forgot, and nothing was committed since: events that counted may be treated as never counted
	forgotten  bool // a first start happened after events had counted, at a later offset
	above      bool // the committed offset was above the lowest position
}

func (w *shards) space() space[shardsState] {
	begin := shardsState{olderOf: -1, committed: -1, faults: w.faults}
	for i := range begin.shards {
		begin.shards[i].ledger = none
	}
	return space[shardsState]{
		begin: begin,
		next: func(s shardsState, telling bool, emit func(shardsState, string)) {
			w.telling = telling
			w.next(s, emit)
		},
		wrong: w.wrong,
		done:  w.done,
	}
}

// done reports whether every event counts, and Kafka knows it.
func (w *shards) done(s shardsState) bool {
	all := int8(len(w.members))
	for _, sh := range s.shards {
		if sh.torn || sh.ledger != plain(int(all)) {
			return false
		}
	}
	return s.log == all && s.committed == all
}

// of returns the events of [from, end) on shard i whose members have a hash of at least low.
func (w *shards) of(i int, from, end, low int) (events set) {
	for e := max(0, from); e < end; e++ {
		if m := int(w.members[e]); m > 0 && (m-1)/2 == i && (m-1)%2+1 >= low {
			events |= 1 << e
		}
	}
	return events
}

// denoted returns the events that a position counts in shard i.
func (w *shards) denoted(i int, p position) set {
	if p == none {
		return 0
	}
	sweep := w.of(i, p.from(), p.end(), 0) &^ w.of(i, p.from(), p.end(), p.hash())
	return w.of(i, 0, p.from(), 0) | sweep
}

func (w *shards) wrong(s shardsState) string {
	if s.forgotten {
		return "all begins anew at the log's end, after events had counted"
	}
	if s.above {
		return fmt.Sprintf("%d is committed, above the lowest position", s.committed)
	}
	for i, sh := range s.shards {
		if sh.torn || sh.ledger == none {
			continue
		}
		if !sh.named && sh.origin > s.first {
			return fmt.Sprintf("shard %d begins at %d, the topic began at %d, and nobody says so", i, sh.origin, s.first)
		}
		denoted := w.denoted(i, sh.ledger)
		for e := range w.members {
			n, want := sh.window>>(2*e)&3, counts(0)
			if denoted.has(e) {
				want = 1
			}
			if e < int(sh.origin) && n <= 1 && w.of(i, e, e+1, 0) != 0 {
				continue
			}
			if n != want {
				return fmt.Sprintf("event %d counts %d times in shard %d, whose ledger is at %v from %d on", e, n, i, sh.ledger, sh.origin)
			}
		}
	}
	return ""
}

// next emits every state that can follow s.
func (w *shards) next(s shardsState, out func(shardsState, string)) {
	w.workerSteps(s, out)
	for i := range s.shards {
		w.masterSteps(s, i, out)
	}
	if int(s.log) < len(w.members) {
		t := s
		t.log++
		out(t, w.say("event %d is published", s.log))
	}
	if s.begin < s.log && s.faults.delete > 0 {
		t := s
		t.begin++
		t.faults.delete--
		out(t, w.say("event %d is deleted", s.begin))
	}
	if s.committed >= 0 && s.faults.forget > 0 {
		t := s
		t.faults.forget--
		t.committed, t.counted, t.unknown = -1, false, true
		out(t, "Kafka forgets what was committed")
	}
	if s.faults.wipe > 0 {
		t := s
		t.faults.wipe--
		t.shards = w.space().begin.shards
		out(t, "all of Redis is wiped")
	}
}
