package model

// workerSteps emits the steps of a replica: it finds out which copy is live, repairs records that are
// older than the one it knows, applies its bans, and applies events.
func (w *generations) workerSteps(s generationsState, k int, out func(generationsState, string)) {
	c := &s.workers[k]
	if s.record.number == 0 {
		w.restore(s, k, out)
	}
	if c.met.number != 0 {
		if t := s; s.record.number != 0 {
			if c.met.newer(s.record) && w.variant != markNotFollows {
				t.record = c.met
			}
			t.workers[k] = replica{record: t.record}
			if w.variant == bansOnce {
				t.workers[k].inLine = c.inLine
			}
			out(t, w.say("replica %d has met a mark %v, the record is %v", k, c.met, t.record))
		}
		return
	}
	if s.record.number != 0 && s.record != c.record && (w.variant != recordUnread || c.record.number == 0) {
		w.checkRecord(s, k, out)
	}
	if c.record.number == 0 {
		return
	}
	t := s
	if t.committed = c.record; t != s {
		if !c.record.newer(s.committed) {
			w.actor = fault // a late commit
		}
		out(t, w.say("replica %d commits with %v", k, c.record))
		w.actor = int8(firstWorker + k)
	}
	for i := range shardCount {
		w.apply(s, k, i, out)
	}
}

// checkRecord handles a record that differs from the one that the replica uses.
func (w *generations) checkRecord(s generationsState, k int, out func(generationsState, string)) {
	c := &s.workers[k]
	if c.record.newer(s.record) {
		s.record = c.record
		out(s, w.say("replica %d finds an older record, and writes %v", k, c.record))
		return
	}
	inLine := c.inLine
	*c = replica{record: s.record}
	if w.variant == bansOnce {
		c.inLine = inLine
	}
	out(s, w.say("replica %d finds the record %v", k, s.record))
}

// apply is a call to one shard. It compares the record that the shard knows.
func (w *generations) apply(s generationsState, k, i int, out func(generationsState, string)) {
	c := &s.workers[k]
	sh := &s.shards[c.record.copy][i]
	switch {
	case sh.ledger == noShard:
		if w.variant == emptyStarted {
			w.refill(s, c.record.copy, i, out)
		}
		// Otherwise the replica halts, and looks again.
	case sh.knows == c.record || w.variant == schemaUnread:
		if s.banned && !c.inLine.has(i) {
			sh.banned = true
			c.inLine |= 1 << i
			out(s, w.say("replica %d bans in shard %d of copy %d", k, i, c.record.copy))
			return
		}
		if sh.ledger < logEnd && (!s.banned || c.inLine == allInLine) {
			sh.ledger++
			out(s, w.say("replica %d applies to shard %d of copy %d", k, i, c.record.copy))
		}
	case sh.knows.newer(c.record):
		c.met = sh.knows
		out(s, w.say("replica %d meets a mark of shard %d: %v", k, i, sh.knows))
	default:
		w.raise(&s, c.record.copy, i, c.record)
		out(s, w.say("replica %d has shard %d know %v", k, i, c.record))
	}
}

// restore writes the record of a lost {0}: the newest one that a commit or a shard knows of. In an
// empty Redis it writes the first record.
func (w *generations) restore(s generationsState, k int, out func(generationsState, string)) {
	found := s.committed
	switch w.variant {
	case configured:
		found = liveCopy{firstNumber, copyCount - 1} // with another number of shards
	case commitTrusted:
	default:
		found = s.newest(found)
	}
	if s.newest(s.committed).number == 0 { // no shard and no commit knows a record: Redis is empty
		found, s.promised = liveCopy{firstNumber, 0}, liveCopy{}
	}
	if found.number == 0 {
		return
	}
	if !s.named.has(int(found.copy)) {
		s.violated = neverSwitched
	}
	s.record = found
	out(s, w.say("replica %d restores the record %v", k, found))
}

// newest returns the newest of a given record and those that shards know.
func (r *copiesInRedis) newest(found liveCopy) liveCopy {
	for c := range r.shards {
		for _, sh := range r.shards[c] {
			if sh.ledger != noShard && sh.knows.newer(found) {
				found = sh.knows
			}
		}
	}
	return found
}

// refill starts a lost shard again from the log.
func (w *generations) refill(s generationsState, live int8, i int, out func(generationsState, string)) {
	for c := range s.shards {
		if s.whole(int8(c)) {
			s.violated = refilledBesideWhole
		}
	}
	s.shards[live][i] = shardOfCopy{knows: s.record}
	out(s, w.say("shard %d of copy %d is refilled", i, live))
}

// remedy emits the operator's repair of a live copy that lacks a shard: another whole copy becomes
// live, or, if none is whole, the lost shards are refilled. Meanwhile, old copies expire.
func (w *generations) remedy(s generationsState, out func(generationsState, string)) {
	for c := range s.shards {
		for i, sh := range s.shards[c] {
			// An old copy expires after a day; repairing what a shard knows takes a second.
			if sh.expires && int8(c) != s.record.copy {
				t := s
				t.shards[c][i] = shardOfCopy{ledger: noShard}
				out(t, w.say("shard %d of copy %d expires", i, c))
			}
		}
	}
	if s.record.number == 0 || s.whole(s.record.copy) {
		return
	}
	for c := range s.shards {
		if !s.whole(int8(c)) {
			continue
		}
		t := s
		t.record = liveCopy{s.newest(s.record).number + 1, int8(c)}
		if w.variant == backByNumber {
			t.record.number = firstNumber
		}
		out(t, w.say("the operator switches back to copy %d: %v", c, t.record))
		return
	}
	if newest := s.newest(s.record); newest != s.record {
		s.record = newest
		out(s, w.say("the operator writes the newest record that a shard knows: %v", newest))
		return
	}
	for i, sh := range s.shards[s.record.copy] {
		if sh.ledger == noShard {
			w.refill(s, s.record.copy, i, out)
		}
	}
}

// jobSteps emits the steps of a job that copies shard by shard, checks, switches, and marks.
func (w *generations) jobSteps(s generationsState, j int, out func(generationsState, string)) {
	job := &s.jobs[j]
	to := liveCopy{job.source.number + 1, job.copy}
	ends := func(why string) {
		*job = generationJob{phase: jobDone}
		out(s, w.say("job %d ends: %s", j, why))
	}
	goesOn := func(phase generationPhase, calls int8) {
		if job.at++; job.at == calls {
			job.phase, job.at = phase, 0
		}
	}
	switch i := job.at; job.phase {
	case jobWaits:
		if s.record.number == 0 {
			return
		}
		*job = generationJob{phase: jobCopies, copy: int8(j + 1), source: s.record}
		if w.variant == numberIsName {
			job.copy = s.record.number
		}
		w.actor = fault // progress must not rely on a new job
		out(s, w.say("job %d begins at %v", j, s.record))
	case jobCopies:
		from, sh := s.shards[job.source.copy][i], &s.shards[job.copy][i]
		if from.ledger == noShard || from.knows != job.source {
			ends("its source is another")
			return
		}
		if s.record.copy == job.copy {
			s.violated = liveOverwritten
		}
		*sh = shardOfCopy{ledger: from.ledger, banned: from.banned, knows: job.source}
		if w.variant == bornLive {
			sh.knows = to
		}
		goesOn(jobChecks, shardCount)
		out(s, w.say("job %d copies shard %d", j, i))
	case jobChecks:
		if s.shards[job.copy][i].ledger == noShard {
			ends("its copy went back")
			return
		}
		goesOn(jobSwitches, shardCount)
		out(s, w.say("job %d checks shard %d", j, i))
	case jobSwitches:
		if s.record != job.source && w.variant != switchBlind {
			ends("the record is another")
			return
		}
		if s.record != job.source {
			for i, sh := range s.shards[s.record.copy] {
				if s.shards[job.copy][i].ledger < sh.ledger {
					s.violated = wentBehind
				}
			}
		}
		s.record, job.phase = to, jobMarks
		s.named |= 1 << to.copy
		out(s, w.say("job %d switches to %v", j, to))
	case jobMarks:
		if w.variant != oldUnmarked || i%2 == 1 {
			w.raise(&s, []int8{job.source.copy, job.copy}[i%2], int(i/2), to)
		}
		if goesOn(jobConfirms, 2*shardCount); w.variant == doneUnmarked {
			job.phase = jobConfirms
		}
		out(s, w.say("job %d marks a shard", j))
	case jobConfirms:
		if s.record.number < to.number && w.variant != doneUnconfirmed {
			ends("its switch was undone")
			return
		}
		if to.newer(s.promised) {
			s.promised = to
		}
		ends("it reports its switch")
	}
}
