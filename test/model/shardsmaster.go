package model

// masterSteps emits the steps of shard i: it executes calls, in time or late, and its master goes back,
// is wiped or is rebuilt, independently of the other.
func (w *shards) masterSteps(s shardsState, i int, out func(shardsState, string)) {
	if c := s.worker.calls[i]; c.on {
		w.execute(s, i, c, out, func(t *shardsState, applied bool) { w.answer(t, i, c, applied) })
	}
	if c := s.late[i]; c.on {
		t := s
		t.late[i] = shardCall{}
		w.execute(t, i, c, func(t shardsState, what string) { out(t, what+", late") }, func(*shardsState, bool) {})
	}
	if s.faults.rollback > 0 && s.olderOf < 0 {
		t := s
		t.older, t.olderOf = s.shards[i], int8(i)
		out(t, w.say("the master of shard %d saves itself", i))
	}
	if s.olderOf == int8(i) {
		t := s
		t.shards[i], t.older, t.olderOf = s.older, shard{}, -1
		t.faults.rollback--
		out(t, w.say("the master of shard %d goes back to %v", i, t.shards[i].ledger))
	}
	if s.faults.wipe > 0 {
		t := s
		t.faults.wipe--
		t.shards[i] = shard{ledger: none}
		out(t, w.say("shard %d is wiped", i))
	}
	if s.shards[i].torn {
		out(w.rebuilt(s, i), w.say("shard %d is rebuilt", i))
	}
}

// execute is apply.lua or start.lua: it compares the ledger, and writes all or nothing, or dies midway.
func (w *shards) execute(s shardsState, i int, c shardCall, out func(shardsState, string), answer func(*shardsState, bool)) {
	sh := &s.shards[i]
	what := w.say("shard %d, at %v, is sent %v to %v with %v", i, sh.ledger, c.expected, c.next, c.events)
	if sh.ledger != c.expected || sh.torn && w.variant != tornPassed {
		answer(&s, false)
		out(s, what+": it is elsewhere")
		return
	}
	if s.faults.death > 0 && c.events != 0 {
		t := s
		t.faults.death--
		t.shards[i].torn = true
		t.shards[i].window = sh.window.add(c.events)
		answer(&t, false)
		out(t, what+", and dies in the middle of that")
	}
	if c.start {
		s.forgotten = s.forgotten || forgets(&s, c)
		sh.origin, sh.named = int8(c.next.from()), c.named
	}
	sh.ledger, sh.torn, sh.window = c.next, false, sh.window.add(c.events)
	s.counted = s.counted || c.events != 0 && !s.unknown
	answer(&s, true)
	out(s, what)
}

// forgets reports whether a start treats events that counted as events that never existed.
func forgets(s *shardsState, c shardCall) bool {
	for _, sh := range s.shards {
		if sh.ledger != none {
			return false
		}
	}
	return s.counted && !c.named && int8(c.next.from()) > s.first
}

// rebuilt returns the state in which shard i's windows are built again from the log, up to its ledger. A
// torn position counts as the position before the piece.
func (w *shards) rebuilt(s shardsState, i int) shardsState {
	sh := &s.shards[i]
	from := max(sh.origin, s.begin)
	sh.named = sh.named || from > sh.origin
	sh.origin, sh.torn = from, false
	sh.window = counts(0).add(w.denoted(i, sh.ledger) & w.of(i, int(from), len(w.members), 0))
	return s
}
