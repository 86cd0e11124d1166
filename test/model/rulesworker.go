package model

// ruledPhase is a worker's phase.
type ruledPhase uint8

const (
	readsLedgers ruledPhase = iota
	finishes                // sweeps that were begun, each by its own rule
	levels                  // shards that lag, by the rule that the shards ahead of them used
	readsOn                 // by its own rule
	awaits                  // it found that a shard had moved, and waits for the answer of the other
)

// ruledWorker is a worker's memory.
type ruledWorker struct {
	own rule
	ruledPhase
	at    [2]ruledPosition
	noted [2]rule

	level   int8 // offset up to which shards are levelled, 0 if all are level
	levelBy rule

	by        rule // of the current reading
	read, end int8 // the batch in hand is [read, end); if end equals read there is none
	until     int8 // the end of the sweeps that are being finished
	without   uint8

	calls [2]ruledCall
}

// workerSteps emits what a worker can do, and its replacement.
func (w *ruled) workerSteps(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	switch {
	case c.ruledPhase == readsLedgers:
		w.readLedgers(s, k, out)
	case c.ruledPhase == awaits:
	case c.end > c.read:
		w.sweep(s, k, out)
	default:
		w.beginBatch(s, k, out)
		w.look(s, k, out)
		w.lag(s, k, out)
	}
	for i, call := range c.calls {
		if call.on {
			w.execute(s, i, call, out, func(t *ruledState, applied bool) { w.answer(t, k, i, call, applied) })
		}
	}
	if s.faults.replaced > 0 {
		w.replace(s, k, out)
	}
}

// replace lets a worker with either rule replace worker k. The calls of worker k that are on their way
// are lost or arrive late.
func (w *ruled) replace(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	for own := rule(1); own <= ruleCount; own++ {
		t := s
		t.faults.replaced--
		t.workers[k] = ruledWorker{own: own}
		t.losesLate(w, own)
		if c.ruledPhase != readsLedgers || own != c.own {
			out(t, w.say("a worker by %v takes the place of one by %v", own, c.own))
		}
		for i, call := range c.calls {
			if t.faults.late > 0 && !t.late[i].on && call.on && w.mayBeLate(&s, call, own) {
				u := t
				u.faults.late--
				u.late[i] = call
				out(u, w.say("a worker by %v takes the place of one by %v, which leaves a call to shard %d on its way", own, c.own, i))
			}
		}
	}
}

// losesLate drops the late calls that cannot be on their way once a worker with rule own has started.
func (s *ruledState) losesLate(w *ruled, own rule) {
	for i, c := range s.late {
		if !w.mayBeLate(s, c, own) {
			s.late[i] = ruledCall{}
		}
	}
}

// mayBeLate reports whether a call may still be on its way once a worker with rule own has started.
// With several shards, a call of another rule that begins a batch may not, unless a ledger has reached the
// end of that batch.
func (w *ruled) mayBeLate(s *ruledState, c ruledCall, own rule) bool {
	if w.shards == 1 || w.beyond || c.by == own || c.expected.by != 0 {
		return true
	}
	for _, sh := range s.shards {
		if sh.ledger.end() >= c.next.end() {
			return true
		}
	}
	return false
}

// readLedgers starts a worker from the ledgers. If the text of a fingerprint is missing, the worker
// halts and looks again.
func (w *ruled) readLedgers(s ruledState, k int, out func(ruledState, string)) {
	c := ruledWorker{own: s.workers[k].own}
	what := w.say("a worker by %v reads the ledgers:", c.own)
	furthest, lowest := 0, maxEvents
	for i := range w.shards {
		sh := &s.shards[i]
		what += w.say(" %v", sh.ledger)
		c.at[i], c.noted[i] = sh.ledger, sh.noted
		if by := sh.ledger.by; by != 0 && by != c.own && !sh.has(by) {
			return
		}
		lowest = min(lowest, sh.ledger.from())
		if f := c.at[furthest]; sh.ledger.end() > f.end() || sh.ledger.end() == f.end() && sh.ledger.by != 0 {
			furthest = i
		}
	}
	far := &s.shards[furthest]
	by := far.ledger.by
	if by == 0 {
		by = far.noted
	}
	if w.variant == levelledByLast {
		by = s.shards[w.shards-1-furthest].noted
	}
	if lowest < far.ledger.end() && by != 0 && by != c.own && w.variant != levelledByOwn {
		if !far.has(by) {
			return
		}
		c.level, c.levelBy = int8(far.ledger.end()), by
	}
	c.goOn(w)
	s.workers[k] = c
	out(s, what)
}

// goOn chooses the next reading. The worker first finishes the sweeps that were begun: those that end
// first and have the same rule together, with the shards whose plain positions are within them. Then
// it levels shards. Then it reads on from the lowest position.
func (c *ruledWorker) goOn(w *ruled) {
	c.without, c.until = 0, 0
	lowest := int8(maxEvents)
	for _, at := range c.at[:w.shards] {
		lowest = min(lowest, int8(at.from()))
		if at.by != 0 && (c.until == 0 || int8(at.end()) < c.until) {
			c.until, c.by = int8(at.end()), at.by
		}
	}
	c.ruledPhase, c.read = finishes, c.until
	switch {
	case c.until > 0:
		for _, at := range c.at[:w.shards] {
			if at.by == c.by && int8(at.end()) == c.until {
				c.read = min(c.read, int8(at.from()))
			}
		}
		for i, at := range c.at[:w.shards] {
			if at.by != 0 && (int8(at.end()) != c.until || at.by != c.by) || at.by == 0 && int8(at.from()) < c.read {
				c.without |= 1 << i
			}
		}
		if w.variant == ownAlways {
			c.by = c.own
		}
	case lowest < c.level:
		c.ruledPhase, c.read, c.by = levels, lowest, c.levelBy
	default:
		c.ruledPhase, c.read, c.by = readsOn, lowest, c.own
	}
	c.end = c.read
}

// beginBatch folds to the sweep's own end, to the position of the other shards, or to any offset.
func (w *ruled) beginBatch(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	if c.waits() {
		return
	}
	first, last := int(c.read)+1, w.records()
	switch c.ruledPhase {
	case finishes:
		first, last = int(c.until), int(c.until)
	case levels:
		last = int(c.level)
	}
	for end := first; end <= last; end++ {
		t := s
		t.workers[k].end = int8(end)
		out(t, w.say("the worker by %v folds [%d, %d) by %v", c.own, c.read, end, c.by))
	}
}

// share returns the records of the batch in hand that a shard lacks, and whether the worker writes to
// the shard at all. A batch by another rule brings every shard to its end, since reading it again by
// the worker's own rule would find different changes.
func (w *ruled) share(c *ruledWorker, i int) (events set, in bool) {
	at := c.at[i]
	if c.without>>i&1 == 1 || at.from() >= int(c.end) {
		return 0, false
	}
	events = w.of(c.by, i, max(at.from(), int(c.read)), int(c.end), at.hash())
	exact := c.by != c.own && w.variant != leftBehind || w.shards == 1
	return events, events != 0 || at.by != 0 || exact
}

// sweep sends the next piece of every shard that has changes, or finishes the batch.
func (w *ruled) sweep(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	left := false
	for i := range w.shards {
		if c.calls[i].on {
			left = true
			continue
		}
		events, in := w.share(&c, i)
		if !in {
			continue
		}
		left = true
		send := func(next ruledPosition, events set) {
			t := s
			t.workers[k].calls[i] = w.piece(&s, &c, i, next, events)
			out(t, w.say("the worker by %v sends shard %d %v to %v with %v by %v", c.own, i, c.at[i], next, events, c.by))
		}
		send(plainly(int(c.end)), events)
		lower := events &^ w.of(c.by, i, 0, w.records(), 2)
		if c.at[i].by == 0 && lower != 0 && lower != events {
			send(ruledPosition{sweeping(c.at[i].from(), int(c.end), 2), c.by}, lower)
		}
	}
	if left {
		return
	}
	s.workers[k].through(w)
	out(s, w.say("the batch to %d is through", c.end))
}

// piece builds a call, with the rule's text if it must be noted. The first piece of a sweep always
// carries the text, since Redis may have gone back since the worker read that the text is there.
func (w *ruled) piece(s *ruledState, c *ruledWorker, i int, next ruledPosition, events set) ruledCall {
	note := c.by != c.noted[i]
	switch {
	case c.at[i].by == 0 && next.by != 0 && w.variant != notedInMemory:
		note = true
	case w.variant == knownUnnoted && s.shards[i].has(c.by),
		w.variant == wholeUnnoted && c.at[i].by == 0 && next.by == 0:
		note = false
	}
	return ruledCall{on: true, expected: c.at[i], next: next, events: events, by: c.by, note: note}
}

// through ends a batch.
func (c *ruledWorker) through(w *ruled) {
	c.read = c.end
	if c.ruledPhase != readsOn && (c.ruledPhase != levels || c.read >= c.level) {
		if c.ruledPhase == levels {
			c.level = 0
		}
		c.goOn(w)
	}
}

// lag moves a shard that had no changes in what was read.
func (w *ruled) lag(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	for i, at := range c.at[:w.shards] {
		if c.calls[i].on || c.ruledPhase != readsOn || at.from() >= int(c.read) {
			continue
		}
		t := s
		t.workers[k].calls[i] = w.piece(&s, &c, i, plainly(int(c.read)), 0)
		out(t, w.say("the worker by %v moves shard %d from %v to %d", c.own, i, at, c.read))
	}
}

// look starts the worker again if a ledger has moved while no call is on its way.
func (w *ruled) look(s ruledState, k int, out func(ruledState, string)) {
	c := s.workers[k]
	if c.waits() {
		return
	}
	for i := range w.shards {
		if s.shards[i].ledger != c.at[i] {
			s.workers[k] = ruledWorker{own: c.own}
			out(s, w.say("the worker by %v looks, and finds shard %d at %v", c.own, i, s.shards[i].ledger))
			return
		}
	}
}

// waits reports whether an answer is outstanding.
func (c *ruledWorker) waits() bool { return c.calls[0].on || c.calls[1].on }

// answer handles the answer to a call.
func (w *ruled) answer(s *ruledState, k, i int, call ruledCall, applied bool) {
	c := &s.workers[k]
	c.calls[i] = ruledCall{}
	if applied && c.ruledPhase != awaits {
		c.at[i] = call.next
		if call.note {
			c.noted[i] = call.by
		}
		return
	}
	c.ruledPhase = awaits
	if !c.waits() {
		*c = ruledWorker{own: c.own}
	}
}
