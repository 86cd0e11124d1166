package model

import "fmt"

// log is one setting to search for the rules by which windows are complete: the records that a
// partition receives, the faults of the partition and of Redis, and the broken rule.
type log struct {
	narrator
	records []record
	regrown []record // replace the records of the part that was cut
	from    startFrom
	keep    int8 // steps for which a window lives after its end
	last    int8 // the last step of the clock
	halts   bool // on_gap: halt
	// disorder is the disorder setting, -1 if it is unset.
	disorder int8
	appended bool // record times are assigned by the broker (LogAppendTime)
	sparse   bool // a mark that lies between two others is dropped
	faults   mishaps
	variant  brokenRule
}

// record is a record's time, 0 for none, and the time of its event.
type record struct{ time, event int8 }

func timed(times ...int8) []record {
	all := make([]record, len(times))
	for i, at := range times {
		all[i] = record{at, at}
	}
	return all
}

type startFrom string

const (
	fromWindow   startFrom = "window"
	fromEarliest startFrom = "earliest"
	fromLatest   startFrom = "latest"
)

// mishaps limits how often each fault may still happen.
type mishaps struct{ crash, rollback, wipe, rebuild, cut int8 }

// brokenRule is a rule of "Complete" that is broken; "" breaks none.
type brokenRule string

const (
	firstRemaining brokenRule = "the first record that is left is taken for the bound"
	unbridged      brokenRule = "a takeover doesn't bridge what the trail lacks with the clock"
	markBefore     brokenRule = "the mark before an offset is taken for that at or after it"
	noMaximum      brokenRule = "an origin is written over a later one"
	trailForgotten brokenRule = "the trail begins anew where the ledger went back"
	beyondBelieved brokenRule = "marks beyond a cut log's end are believed"
	refilled       brokenRule = "a lost Redis is filled from what is left without a word"
	momentBefore   brokenRule = "the moment is taken before Kafka is asked"
	skipUnnamed    brokenRule = "a gap is skipped and no origin says so"
	rebuiltLower   brokenRule = "a rebuild brings the origin down below what it replaced"
	untrailed      brokenRule = "what a gap is bounded by isn't in the trail"
	boundItself    brokenRule = "the origin's time is the bound itself"
	askedAlone     brokenRule = "a start by time takes what it asked for as the bound of what was deleted, too"
	untimedIgnored brokenRule = "a record without a time is taken for one that says nothing"
)

// boards is the whole state of Redis, which goes back in time together.
type boards struct {
	ledger  int8 // none: -1
	counted set
	origin  origin
}

type origin struct{ offset, time int8 }

// work is a consumer's next step, or its current phase.
type work uint8

const (
	away   work = iota // knows only its trail
	asking             // has read Redis
	begins             // has a start to write
	wrote              // has written a start, and commits it
	works              // reads and applies
	halted             // because of a gap or a cut log; checks again
)

// reader holds all that the consumer knows.
type reader struct {
	work
	now, found int8  // read from Redis together; found is the ledger
	start      start // the start that it is about to write
	at, read   int8
	bound      int8  // of the times of all records before read
	trail      trail // the consumer's own
	saw        bool  // it located after the log was cut
}

// start is a call of start.lua: the ledger that it expects, and its writes.
type start struct {
	on, recovers bool
	from, at     int8
	origin       origin
	lacks        bool // some event that the log ever had for a live window is missing; the consumer cannot know this
	trail        trail
}

// lateCall is a piece or a start that a consumer had sent when it died.
type lateCall struct {
	on       bool
	from, to int8 // of a piece
	start    start
}

// completeState is one state of the whole model.
type completeState struct {
	clock, begin, end int8  // the log is [begin, end)
	cut               int8  // first offset with a regrown record; -1: none
	unseen            bool  // no consumer has committed since the cut
	committed         int8  // -1: nothing
	memory            trail // the trail that was committed with it
	boards
	older    boards
	hasOlder bool
	reader   reader
	late     lateCall
	mishaps  mishaps
	lowered  bool // an origin decreased
	silent   bool // a lost Redis was filled from a log that lacks events, without a halt
}

func (l *log) space() space[completeState] {
	return space[completeState]{
		begin: completeState{clock: 1, cut: -1, committed: -1, boards: boards{ledger: -1}, mishaps: l.faults},
		next: func(s completeState, telling bool, emit func(completeState, string)) {
			l.telling = telling
			l.next(s, emit)
		},
		wrong: l.wrong,
		done: func(s completeState) bool {
			return s.ledger == int8(len(l.records)) && s.end == s.ledger || s.reader.work == halted
		},
	}
}

// record returns the record that is, or was, at offset i.
func (l *log) record(s *completeState, i int8) record {
	if s.cut >= 0 && i >= s.cut {
		return l.regrown[i]
	}
	return l.records[i]
}

func (l *log) wrong(s completeState) string {
	switch {
	case s.lowered:
		return "an origin went down"
	case s.silent:
		return "a lost Redis is filled from a log that lacks events of live windows, and on_gap says halt"
	case s.reader.work == halted && s.begin == 0 && s.reader.found <= s.end:
		return "a halt over a log that lacks nothing"
	}
	for i := range min(s.ledger, s.end) {
		if e := l.record(&s, i).event; e >= s.origin.time && !s.counted.has(int(i)) {
			return fmt.Sprintf("the window %d is shown as complete, by an origin of %d, and lacks event %d", e, s.origin.time, i)
		}
	}
	return ""
}

// next emits every state that can follow s.
func (l *log) next(s completeState, out func(completeState, string)) {
	if s.clock < l.last {
		t := s
		t.clock++
		out(t, l.say("it is %d", t.clock))
	}
	l.kafkaSteps(s, out)
	l.readerSteps(s, out)
	l.redisSteps(s, out)
}

// kafkaSteps emits the changes of the log: a record is appended or deleted, or the log is cut.
func (l *log) kafkaSteps(s completeState, out func(completeState, string)) {
	if int(s.end) < len(l.records) && !s.unseen {
		if r := l.record(&s, s.end); max(r.time, r.event) <= s.clock {
			t := s
			t.end++
			out(t, l.say("record %d is appended, of time %d", s.end, r.time))
		}
	}
	if s.begin < s.end {
		t := s
		t.begin++
		out(t, l.say("record %d is deleted", s.begin))
	}
	if s.mishaps.cut > 0 {
		for end := s.begin; end < s.end; end++ {
			t := s
			t.mishaps.cut--
			t.end, t.cut, t.unseen, t.reader.saw = end, end, true, false
			out(t, l.say("the log is cut at %d", end))
		}
	}
}

// redisSteps emits late calls, Redis's own faults, and a rebuild.
func (l *log) redisSteps(s completeState, out func(completeState, string)) {
	if s.late.on {
		t := s
		t.late = lateCall{}
		if s.late.start.on {
			l.write(&t, s.late.start)
		} else if t.ledger == s.late.from {
			t.apply(s.late.to)
		}
		out(t, "a call comes late that another consumer left")
	}
	if s.mishaps.rollback > 0 && !s.hasOlder {
		t := s
		t.older, t.hasOlder = s.boards, true
		out(t, "Redis saves itself")
	}
	if s.hasOlder {
		t := s
		t.boards, t.older, t.hasOlder = s.older, boards{}, false
		t.mishaps.rollback--
		out(t, l.say("Redis goes back to %d", t.ledger))
	}
	if s.mishaps.wipe > 0 || s.reader.work == halted && s.ledger > s.end {
		t := s
		t.boards = boards{ledger: -1}
		t.mishaps.wipe = max(0, s.mishaps.wipe-1)
		out(t, "Redis is wiped")
	}
	if s.mishaps.rebuild > 0 && s.ledger >= s.begin && s.ledger <= s.end {
		l.rebuild(s, out)
	}
}

// rebuild reads the log up to the ledger, and replaces the windows that this makes complete. Earlier
// windows stay, and the origin does not decrease to their start.
func (l *log) rebuild(s completeState, out func(completeState, string)) {
	t := s
	t.mishaps.rebuild--
	known := s.memory.within(s.end)
	from := l.originOf(s.begin, l.latest(&s, s.begin, s.end, s.clock, known))
	for i := range s.ledger {
		if l.record(&s, i).event < from.time {
			continue
		}
		t.counted &^= 1 << i
		if i >= s.begin {
			t.counted |= 1 << i
		}
	}
	lowest := from.time
	if l.variant == rebuiltLower {
		lowest = max(0, lowest-1)
	}
	if t.origin.time > lowest {
		t.origin = origin{from.offset, lowest}
	}
	out(t, l.say("a rebuild replaces the windows from %d on", from.time))
}

// apply counts the events before an offset.
func (s *completeState) apply(to int8) {
	for i := s.ledger; i < to; i++ {
		s.counted |= 1 << i
	}
	s.ledger = to
}

// write is start.lua. It returns false if the ledger has moved.
func (l *log) write(s *completeState, b start) bool {
	if s.ledger != b.from {
		return false
	}
	o := b.origin
	if s.ledger >= 0 {
		if l.variant == skipUnnamed {
			o = s.origin
		}
		if l.variant != noMaximum {
			o = origin{max(o.offset, s.origin.offset), max(o.time, s.origin.time)}
		}
		s.lowered = s.lowered || o.time < s.origin.time || o.offset < s.origin.offset
	}
	s.silent = s.silent || l.halts && b.recovers && b.lacks
	s.ledger, s.origin = b.at, o
	return true
}
