package model

// readLedgers starts a worker from the ledgers: it skips a gap, writes a start, or continues.
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
		case sh.ledger.from() < int(s.begin): // a gap: the rest of a sweep is still swept
			c.named = sh.named || w.variant != gapUnnamed
			if at := sh.ledger; int(s.begin) < at.end() {
				c.next = sweeping(int(s.begin), at.end(), at.hash())
			} else {
				c.next = plain(int(s.begin))
			}
		default:
			continue
		}
		// One shard at a time: the worker reads all ledgers again after each start.
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

// startOf returns where a shard without the topic begins, and whether events before that are missing.
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
		// If two workers resolve it, one may write late, to a shard that was lost in between. Both
		// offsets are valid, as no event has counted yet.
		s.first = max(s.first, s.log)
	}
	switch {
	case !others && (s.committed < 0 || w.variant == firstAgain), others && w.variant == begunAlone:
		return plain(int(s.log)), false
	case others && s.committed < 0 && (atOrigins || w.variant == copiedLate):
		return plain(found.ledger.from()), found.named
	}
	return plain(int(s.begin)), true // lost: the shard begins at the log's start
}

// goOn chooses the next reading when one ends, or at the start. The worker first finishes the sweeps
// that other workers began, one after the other; then it reads from the lowest position.
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
