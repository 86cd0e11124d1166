package model

// readLedgers is where a worker starts: over a gap, at a start, or on from what it found.
func (w *shards) readLedgers(s shardsState, out func(shardsState, string)) {
	k := shardWorker{shardPhase: starts}
	what := "the consumer reads the ledgers:"
	for i, sh := range s.shards {
		what += w.say(" %v", sh.ledger)
		k.at[i] = sh.ledger
		if sh.torn && w.variant != tornPassed {
			return // it halts, and looks again
		}
	}
	for i, sh := range s.shards {
		c := shardCall{on: true, start: true, expected: sh.ledger}
		switch {
		case sh.ledger == none:
			c.next, c.named = w.startOf(&s, i)
		case sh.ledger.from() < int(s.begin): // a gap: what is left of a sweep is still swept
			c.named = sh.named || w.variant != gapUnnamed
			if at := sh.ledger; int(s.begin) < at.end() {
				c.next = sweeping(int(s.begin), at.end(), at.hash())
			} else {
				c.next = plain(int(s.begin))
			}
		default:
			continue
		}
		// One after the other: each is read again once it is there.
		k.calls[i] = c
		s.worker = k
		out(s, w.say("%s, and starts shard %d at %v", what, i, c.next))
		return
	}
	k.shardPhase = sweeps
	k.committed = s.committed >= 0
	k.goOn(w)
	s.worker = k
	out(s, what)
}

// startOf is where a shard without the topic begins, and whether something is missing then.
func (w *shards) startOf(s *shardsState, i int) (at position, named bool) {
	others, atOrigins := false, true
	var found shard
	for j, sh := range s.shards {
		if j != i && sh.ledger != none {
			others, found = true, sh
			atOrigins = atOrigins && sh.ledger == plain(int(sh.origin))
		}
	}
	if !others && s.committed < 0 && !s.counted {
		// Of two that resolve it, one may write late, to a shard that was lost in between: each
		// is a place where the topic may begin, as nothing has counted yet.
		s.first = max(s.first, s.log)
	}
	switch {
	case !others && (s.committed < 0 || w.variant == firstAgain), others && w.variant == begunAlone:
		return plain(int(s.log)), false
	case others && s.committed < 0 && (atOrigins || w.variant == copiedLate):
		return plain(found.ledger.from()), found.named
	}
	return plain(int(s.begin)), true // lost: what the log has
}

// goOn is a worker that has come to the end of a reading, or begins: sweeps that others began
// are finished first, one after the other, and then reading begins at the lowest position.
func (k *shardWorker) goOn(w *shards) {
	resuming := false
	for _, at := range k.at {
		if !at.isPlain() && (!resuming || int8(at.from()) < k.read) {
			resuming, k.read = true, int8(at.from())
		}
	}
	if !resuming && (k.resuming || k.shardPhase != sweeps || !k.committed || k.end == 0) {
		k.read = k.lowest()
		if w.variant == highestRead {
			k.read = k.highest()
		}
	}
	k.resuming, k.end = resuming, k.read
}
