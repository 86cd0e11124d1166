package model

// workerSteps emits what the partition's owner can do, and its death.
func (w *shards) workerSteps(s shardsState, out func(shardsState, string)) {
	k := s.worker
	switch k.shardPhase {
	case knowsNothing:
		w.readLedgers(s, out)
	case sweeps:
		w.commit(s, out)
		w.look(s, out)
		w.lag(s, out)
		switch {
		case k.end > k.read:
			w.sweep(s, out)
		case !k.waits() && (k.committed || w.variant == readUncommitted):
			w.beginBatch(s, out)
		}
	}
	if s.faults.crash > 0 && k.shardPhase != knowsNothing {
		t := s
		t.faults.crash--
		t.worker = shardWorker{}
		for i, c := range k.calls {
			if c.on && !t.late[i].on {
				t.late[i] = c
			}
		}
		out(t, "the consumer dies, another takes its place")
	}
}

// waits reports whether an answer is outstanding.
func (k *shardWorker) waits() bool {
	for _, c := range k.calls {
		if c.on {
			return true
		}
	}
	return false
}

// lowest returns the lowest position, which is committed.
func (k *shardWorker) lowest() int8 {
	low := k.at[0].from()
	for _, at := range k.at {
		low = min(low, at.from())
	}
	return int8(low)
}

// highest is used only by broken rules.
func (k *shardWorker) highest() int8 {
	high := 0
	for _, at := range k.at {
		high = max(high, at.from())
	}
	return int8(high)
}

// beginBatch reads on: to a sweep's own end, or otherwise to any offset.
func (w *shards) beginBatch(s shardsState, out func(shardsState, string)) {
	k := s.worker
	if k.read < s.begin {
		s.worker = shardWorker{}
		out(s, "what was to be read is gone")
		return
	}
	first, last := k.read+1, s.log
	for _, at := range k.at {
		if k.resuming && !at.isPlain() && int8(at.from()) == k.read {
			first, last = int8(at.end()), int8(at.end())
		}
	}
	if w.variant == endOfAnother && k.resuming {
		for _, at := range k.at {
			last = max(last, int8(at.end()))
		}
		first = last
	}
	for end := first; end <= last; end++ {
		t := s
		t.worker.end = end
		out(t, w.say("the consumer folds [%d, %d)", k.read, end))
	}
}

// share returns the events of the batch in hand that shard i lacks, and whether the shard is in the
// batch. A shard in mid-sweep is in the batch even if no event is left.
func (w *shards) share(k *shardWorker, i int) (events set, in bool) {
	at := k.at[i]
	from, low := max(at.from(), int(k.read)), 0
	switch {
	case !at.isPlain():
		if at.from() < int(k.read) || at.end() != int(k.end) && w.variant != endOfAnother {
			return 0, false
		}
		if low = at.hash(); w.variant == sweepForgotten {
			low = 0
		}
	case k.resuming && at.from() < int(k.read) && w.variant != alongBelow:
		return 0, false
	case w.variant == positionIgnored:
		from = int(k.read)
	}
	if at.isPlain() && (at.end() >= int(k.end)) && w.variant != positionIgnored {
		return 0, false
	}
	if at == plain(int(k.end)) {
		return 0, false
	}
	events = w.of(i, from, int(k.end), low)
	if w.variant == borderCrossed {
		events |= w.of(1-i, from, int(k.end), 2)
	}
	if w.variant == alongUnread && k.resuming && at.isPlain() {
		return 0, true
	}
	return events, events != 0 || !at.isPlain()
}

// sweep sends the next piece of every shard that has changes, or finishes the batch.
func (w *shards) sweep(s shardsState, out func(shardsState, string)) {
	k := s.worker
	left := 0
	for i := range k.at {
		if k.calls[i].on {
			left++
			continue
		}
		events, in := w.share(&k, i)
		if !in {
			continue
		}
		left++
		send := func(next position, events set) {
			t := s
			t.worker.calls[i] = shardCall{on: true, expected: k.at[i], next: next, events: events}
			out(t, w.say("the consumer sends shard %d %v to %v with %v", i, k.at[i], next, events))
		}
		send(plain(int(k.end)), events)
		lower := events &^ w.of(i, 0, len(w.members), 2)
		if k.at[i].isPlain() && lower != 0 && lower != events {
			send(sweeping(k.at[i].from(), int(k.end), 2), lower)
		}
	}
	if left == 0 || left == 1 && w.variant == oneEnds && !k.waits() {
		t := s
		t.worker.read = k.end
		t.worker.goOn(w)
		out(t, w.say("the batch to %d is through", k.end))
	}
}

// lag moves a shard that had no changes in what was read.
func (w *shards) lag(s shardsState, out func(shardsState, string)) {
	k := s.worker
	for i, at := range k.at {
		to := k.read
		if w.variant == allMoved {
			to = k.end
		}
		if k.calls[i].on || k.resuming || !at.isPlain() || at.from() >= int(to) {
			continue
		}
		t := s
		t.worker.calls[i] = shardCall{on: true, expected: at, next: plain(int(to))}
		out(t, w.say("the consumer moves shard %d from %v to %d", i, at, to))
	}
}

// commit commits the lowest position.
func (w *shards) commit(s shardsState, out func(shardsState, string)) {
	at := s.worker.lowest()
	switch w.variant {
	case highestCommitted:
		at = s.worker.highest()
	case readCommitted:
		at = s.worker.read
	}
	if at == s.committed && s.worker.committed {
		return
	}
	low := at
	s.unknown = false
	for _, sh := range s.shards {
		s.counted = s.counted || sh.window != 0
		if sh.ledger != none {
			low = min(low, int8(sh.ledger.from()))
		}
	}
	s.above = low < at && s.faults.rollback == w.faults.rollback && s.faults.wipe == w.faults.wipe
	s.committed, s.worker.committed = at, true
	out(s, w.say("%d is committed", at))
}

// look drops everything that was folded if a ledger has moved while no call is on its way.
func (w *shards) look(s shardsState, out func(shardsState, string)) {
	if s.worker.waits() || s.worker.end > s.worker.read {
		return
	}
	for i, sh := range s.shards {
		if sh.ledger != s.worker.at[i] || sh.torn {
			s.worker = shardWorker{}
			out(s, w.say("a look finds shard %d at %v", i, sh.ledger))
			return
		}
		if w.variant == oneLookedAt {
			return
		}
	}
}

// answer handles the answer to a call.
func (w *shards) answer(s *shardsState, i int, c shardCall, applied bool) {
	k := &s.worker
	k.calls[i] = shardCall{}
	switch {
	case k.shardPhase == starts:
		*k = shardWorker{} // and reads the ledgers again
		return
	case applied && k.shardPhase == sweeps:
		k.at[i] = c.next
		return
	case w.variant == onePositionKept && k.shardPhase == sweeps && s.shards[i].ledger.isPlain():
		k.at[i] = s.shards[i].ledger
		return
	}
	k.shardPhase = drops
	if !k.waits() {
		*k = shardWorker{}
	}
}
