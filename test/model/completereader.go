package model

// latest bounds the times of the records before offset, which is the log's begin or end. It returns 0
// if there are no records before it.
func (l *log) latest(s *completeState, offset, end, now int8, t trail) int8 {
	if offset == 0 {
		return 0
	}
	var first int8
	if offset < end {
		first = l.record(s, offset).time
	}
	if l.variant == firstRemaining && first > 0 {
		return first
	}
	best, ok := l.known(t, offset)
	better := func(at int8) {
		if !ok || at < best {
			best, ok = at, true
		}
	}
	if first > 0 && l.appended {
		better(first)
	}
	if first > 0 && l.disorder >= 0 {
		better(first + l.disorder)
	}
	if !ok {
		_, last := t.last()
		best = max(now, last)
	}
	return best
}

func (l *log) known(t trail, offset int8) (int8, bool) {
	if l.variant == markBefore {
		return t.before(offset)
	}
	return t.latest(offset)
}

func (l *log) originOf(offset, latest int8) origin {
	switch {
	case offset == 0 || latest == 0:
		return origin{offset, 0}
	case l.variant == boundItself:
		return origin{offset, latest}
	}
	return origin{offset, latest + 1}
}

// readerSteps emits what the consumer can do, and its death.
func (l *log) readerSteps(s completeState, out func(completeState, string)) {
	r := s.reader
	t := s
	switch r.work {
	case away, halted:
		t.reader = reader{work: asking, now: s.clock, found: s.ledger, trail: r.trail}
		out(t, l.say("the consumer reads the ledger: %d", s.ledger))
	case asking:
		l.locate(s, out)
	case begins:
		if l.write(&t, r.start) {
			t.reader.work = wrote
			out(t, l.say("it writes where it begins: %d, the origin's time is %d", r.start.at, t.origin.time))
		} else {
			t.reader = reader{trail: r.trail}
			out(t, "it finds the ledger moved")
		}
	case wrote:
		t.commit(r.start.at, r.start.trail)
		t.reader = reader{trail: r.trail}
		if r.start.from >= 0 { // a gap is skipped: it continues from the new position at once
			bound, _ := l.known(r.trail, r.start.at)
			t.reader = reader{work: works, at: r.start.at, read: r.start.at, bound: bound, trail: r.trail, saw: r.saw}
		}
		out(t, l.say("it commits %d with %v", r.start.at, r.start.trail))
	case works:
		l.count(s, out)
	}
	if s.mishaps.crash > 0 && r.work != away && r.work != halted {
		t := s
		t.mishaps.crash--
		t.reader, t.late = reader{}, lateCall{}
		out(t, "the consumer dies, another takes its place")
		if r.work == begins {
			t.late = lateCall{on: true, start: r.start}
			out(t, "the consumer dies with its start on the way, another takes its place")
		}
		if r.work == works && r.at < r.read {
			t.late = lateCall{on: true, from: r.at, to: r.read}
			out(t, l.say("the consumer dies with %d to %d on the way, another takes its place", r.at, r.read))
		}
	}
}

func (s *completeState) commit(at int8, t trail) {
	s.committed, s.memory = at, t
	s.unseen = s.unseen && !s.reader.saw
}

// locate applies the start table to Kafka's answers, which are all of one moment: if the log's head
// were deleted between them, the first record would be missing and the consumer would ask again.
func (l *log) locate(s completeState, out func(completeState, string)) {
	r := s.reader
	now := s.clock
	if l.variant == momentBefore {
		now = r.now
	}
	known := s.memory.with(r.trail)
	if l.variant != beyondBelieved {
		known = known.within(s.end)
	}
	what := l.say("it asks Kafka: the log has %d to %d, %d is committed with %v", s.begin, s.end, s.committed, s.memory)
	t := s
	t.reader = reader{work: halted, found: r.found, trail: known, saw: s.unseen}
	switch {
	case r.found > s.end:
		out(t, what+": the log was cut, it halts")
	case r.found >= s.begin:
		bound, ok := l.known(known, r.found)
		if !ok && r.found > 0 && l.variant != unbridged {
			_, last := known.last()
			bound = max(r.now, last) // the ledger was read at that moment
			known = known.add(r.found, bound, false)
		}
		t.reader = reader{work: works, at: r.found, read: r.found, bound: bound, trail: known, saw: s.unseen}
		if s.committed < 0 {
			t.commit(r.found, known)
		}
		out(t, l.say("%s, and goes on from %d with %v", what, r.found, known))
	case r.found >= 0 && l.halts:
		out(t, what+": events are gone, it halts")
	case r.found >= 0:
		latest := l.latest(&s, s.begin, s.end, now, known)
		if l.variant != untrailed {
			known = known.add(s.begin, latest, false)
		}
		t.reader.work, t.reader.trail = begins, known
		t.reader.start = start{on: true, from: r.found, at: s.begin, origin: l.originOf(s.begin, latest), trail: known}
		out(t, what+": events are gone, it will skip them")
	default:
		l.start(s, t, now, what, out)
	}
}

// start resolves the offset at which a topic begins. After a loss of Redis it resolves it again, from
// what is committed.
func (l *log) start(s, t completeState, now int8, what string, out func(completeState, string)) {
	known := s.memory
	if l.variant != beyondBelieved {
		known = known.within(s.end)
	}
	recovers := s.committed >= 0
	from, asked := l.from, max(0, s.reader.now-l.keep)
	if recovers {
		from = fromWindow
	}
	latest := l.latest(&s, s.begin, s.end, now, known)
	if recovers && latest > 0 && latest >= asked && l.halts && l.variant != refilled {
		out(t, what+": Redis was lost, and the log lacks what it may have had: it halts")
		return
	}
	at := s.begin
	switch {
	case from == fromLatest:
		if at = s.end; at > s.begin {
			latest = l.latest(&s, at, at, now, known)
		}
	case from == fromWindow && (s.begin == s.end || l.record(&s, s.begin).time > 0):
		for at < s.end && l.record(&s, at).time < asked {
			at++
		}
		if at > s.begin {
			if latest = max(latest, asked-1); l.variant == askedAlone {
				latest = asked - 1
			}
		}
	}
	b := start{on: true, recovers: recovers, from: -1, at: at, origin: l.originOf(at, latest)}
	for i := range at {
		b.lacks = b.lacks || l.record(&s, i).event >= asked
	}
	b.trail = known.add(at, latest, false)
	t.reader.work, t.reader.start = begins, b
	out(t, l.say("%s, and will begin at %d", what, at))
}

// count reads, applies, commits, and checks whether the ledger is where the consumer left it.
func (l *log) count(s completeState, out func(completeState, string)) {
	r := s.reader
	lost := func(what string) {
		t := s
		t.reader = reader{trail: r.trail}
		if l.variant == trailForgotten && s.ledger < r.at && s.ledger >= s.begin {
			t.reader = reader{work: works, at: s.ledger, read: s.ledger}
		}
		out(t, what)
	}
	switch {
	case r.read < s.begin || r.read > s.end:
		lost("what it would read isn't in the log")
	case r.read < s.end:
		t := s
		t.reader.read++
		rec := l.record(&s, r.read)
		if t.reader.bound = max(r.bound, rec.time); rec.time == 0 && l.variant != untimedIgnored {
			t.reader.bound = max(r.bound, s.clock)
		}
		out(t, l.say("it reads record %d", r.read))
	}
	if s.unseen && !r.saw {
		lost("it is given its partition again")
	}
	if s.ledger != r.at {
		lost("it finds the ledger moved")
	}
	if s.committed != r.at || s.memory != r.trail || s.unseen && r.saw {
		t := s
		t.commit(r.at, r.trail)
		out(t, l.say("it commits %d with %v", r.at, r.trail))
	}
	if r.at < r.read {
		t := s
		t.reader.trail = t.reader.trail.add(r.read, r.bound, l.sparse)
		r.trail = t.reader.trail
		if s.ledger != r.at {
			lost("its piece finds the ledger moved")
		} else {
			t.reader.at = r.read
			t.apply(r.read)
			out(t, l.say("it applies %d to %d, and has %v", r.at, r.read, r.trail))
		}
	}
}
