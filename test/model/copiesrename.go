package model

// covers reports, by the positions' texts alone, whether p counts every event that q counts.
func (p position) covers(q position) bool {
	return p == q || q.end() <= p.from() ||
		q.from() == p.from() && q.end() == p.end() && q.hash() <= p.hash() && !p.isPlain() ||
		q.isPlain() && q.from() <= p.from()
}

// renameSteps emits the steps of a job that builds each shard from the log beside the live one, and renames it.
func (w *copies) renameSteps(s copiesState, j int, out func(copiesState, string)) {
	for i := range s.shards {
		sh, job := &s.shards[i], &s.jobs[j]
		if job.done.has(i) {
			continue
		}
		if w.way == renamesOne && sh.hold.by == 0 {
			t := s
			t.shards[i].hold.by = int8(j + 1)
			out(t, w.say("job %d holds shard %d", j, i))
		}
		w.build(s, j, i, out)
		to, live := sh.copy[j].ledger, sh.ledger[0]
		ready := to == live
		if w.way == renames || w.variant == keptBehind {
			ready = live.covers(to)
		}
		if w.variant == holdTrusted {
			if ready && !job.equal.has(i) && sh.hold.by == int8(j+1) && live.isPlain() {
				t := s
				t.jobs[j].equal |= 1 << i
				out(t, w.say("job %d finds the ledgers of shard %d equal", j, i))
			}
			ready = job.equal.has(i)
		}
		if ready {
			w.renameShard(s, j, i, out)
		}
	}
}

// build folds the log into the new copy of a shard, never past the live ledger.
func (w *copies) build(s copiesState, j, i int, out func(copiesState, string)) {
	at, live := s.shards[i].copy[j].ledger, s.shards[i].ledger[0]
	to := func(next position) {
		t := s
		c := &t.shards[i].copy[j]
		c.window[0], c.ledger = c.window[0].add(w.between(0, i, at, next)), next
		out(t, w.say("job %d builds shard %d from %v to %v", j, i, at, next))
	}
	limit := live.from()
	if w.variant == builtPast {
		limit = len(w.members[0])
	}
	switch {
	case at.isPlain():
		for end := at.from() + 1; end <= limit; end++ {
			to(plain(end))
		}
		if !live.isPlain() && live.from() == at.from() {
			to(live)
		}
	case live.from() >= at.end():
		to(plain(at.end()))
	case live.from() == at.from() && live.end() == at.end() && live.hash() > at.hash():
		to(live)
	}
}

// renameShard is the script that replaces the windows of a shard and its ledger.
func (w *copies) renameShard(s copiesState, j, i int, out func(copiesState, string)) {
	sh, job := &s.shards[i], &s.jobs[j]
	what := w.say("job %d renames shard %d from %v to %v", j, i, sh.ledger[0], sh.copy[j].ledger)
	sh.window[0], sh.ledger[0] = sh.copy[j].window[0], sh.copy[j].ledger
	if w.way == renames {
		sh.kept = sh.window[0]
	}
	if sh.sealed != sealedNow {
		sh.final = sh.window[0]
	}
	sh.copy[j] = newCopy{}
	if sh.hold.by == int8(j+1) {
		sh.hold = noHold
	}
	if job.done |= 1 << i; job.done == 1<<shardCount-1 {
		s.ends(j)
	}
	out(s, what)
}

// sealSteps seals a window of a shard, and takes the seal back.
func (w *copies) sealSteps(s copiesState, i int, out func(copiesState, string)) {
	sh := &s.shards[i]
	switch at := sh.ledger[0]; {
	case s.faults.seal > 0 && sh.sealed == open && sh.hold.by == 0:
		// Only a leader seals: a job that is running has lost its lock to that leader.
		s.faults.seal--
		sh.sealed, s.lockLost = sealedNow, s.jobs[0].runs()
		out(s, w.say("another leader seals a window of shard %d", i))
	case w.way == renames && sh.sealed == open && at.from() >= 2 && sh.hold.by == 0:
		sh.sealed, sh.sealedAt = sealedNow, at
		out(s, w.say("a window of shard %d is sealed at %v", i, at))
	case w.way == renames && sh.sealed == sealedNow && (w.variant == reopenedEarly || at.covers(sh.sealedAt)):
		sh.sealed = reopened
		out(s, w.say("the seal of shard %d is taken back", i))
	}
}
