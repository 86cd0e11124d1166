package model

// copyJob is a job's memory.
type copyJob struct {
	phase  copyPhase
	at     int8        // the next shard, or in a copy the next part
	read   [2]position // per partition, on the first shard
	target [2]position // per partition
	begun  int8        // number of times that it began
	done   set         // the shards that it has renamed
	equal  set         // the shards whose ledgers it compared, for a broken rule
}

type copyPhase uint8

const (
	noJob copyPhase = iota
	takesHolds
	seeksLevel
	namesTargets
	copiesParts
	switches
	builds
	jobEnded
)

var idleJob = copyJob{read: [2]position{none, none}, target: [2]position{none, none}}

// goesOn advances to the next call of a phase, or after the last call to the next phase.
func (j *copyJob) goesOn(phase copyPhase, calls int8) {
	if j.at++; j.at == calls {
		j.phase, j.at = phase, 0
	}
}

func (j *copyJob) runs() bool { return j.phase != noJob && j.phase != jobEnded }

// begins starts a new attempt of a job. Its new copy has its own keys, so nothing of an earlier
// attempt counts, whether it still exists, arrives late or comes back with a rollback.
func (s *copiesState) begins(w *copies, j int) {
	job := idleJob
	job.phase, job.begun = takesHolds, s.jobs[j].begun
	if s.jobs[j].phase == noJob {
		job.begun++
		s.lockLost = false
	}
	if w.way != reshards {
		job.phase = builds
	}
	s.jobs[j] = job
	for i := range s.shards {
		s.shards[i].copy[j] = newCopy{}
		if s.shards[i].hold.by == int8(j+1) {
			s.shards[i].hold = noHold
		}
	}
	if w.variant != oneIdentity {
		s.older.copy[j] = newCopy{}
	}
}

// again starts the job again, unless another job has its lease.
func (w *copies) again(s copiesState, j int, why string, out func(copiesState, string)) {
	if j == 0 && s.jobs[1].runs() || s.lockLost {
		s.ends(j)
		out(s, w.say("job %d ends, as it has lost its lease: %s", j, why))
		return
	}
	s.begins(w, j)
	out(s, w.say("job %d begins anew: %s", j, why))
}

func (s *copiesState) ends(j int) {
	s.jobs[j] = copyJob{phase: jobEnded}
	for i := range s.shards {
		s.shards[i].copy[j] = newCopy{}
	}
	s.older.copy[j] = newCopy{}
}

// parts returns the number of parts of one shard: one per hash, and the hidden members.
func (w *copies) parts() int8 {
	if w.faults.ban > 0 {
		return 3
	}
	return 2
}

// reshardSteps emits the steps of a job that pauses, copies and switches. Each step is one call to one shard.
func (w *copies) reshardSteps(s copiesState, j int, out func(copiesState, string)) {
	job, i := &s.jobs[j], s.jobs[j].at
	me := int8(j + 1)
	if s.switched {
		s.ends(j)
		out(s, w.say("job %d ends, as the record is another", j))
		return
	}
	switch job.phase {
	case takesHolds:
		sh := &s.shards[i]
		if sh.hold.by != 0 && sh.hold.by != me {
			if j == 0 && s.jobs[1].runs() {
				w.again(s, j, "another one holds", out)
			}
			return
		}
		sh.hold = noHold
		sh.hold.by = me
		job.goesOn(seeksLevel, shardCount)
		out(s, w.say("job %d holds shard %d", j, i))
	case seeksLevel:
		w.seekLevel(s, j, out)
	case namesTargets:
		if s.shards[i].hold.by != me {
			w.again(s, j, "its hold is gone", out)
			return
		}
		s.shards[i].hold.target = job.target
		job.goesOn(seeksLevel, shardCount)
		out(s, w.say("job %d names targets on shard %d: %v", j, i, job.target))
	case copiesParts:
		w.copyPart(s, j, out)
	case switches:
		w.switchOver(s, j, out)
	}
}

// seekLevel reads the positions of a shard in the call that compares the hold. The shards are level
// once all positions are plain, equal and not below their targets.
func (w *copies) seekLevel(s copiesState, j int, out func(copiesState, string)) {
	job, i := &s.jobs[j], s.jobs[j].at
	sh := &s.shards[i]
	if sh.hold.by != int8(j+1) && w.variant != goneHoldIgnored {
		w.again(s, j, "its hold is gone", out)
		return
	}
	for _, p := range sh.ledger {
		if p != none && !p.isPlain() {
			return // a worker finishes the sweep
		}
	}
	what := w.say("job %d finds shard %d at %v", j, i, sh.ledger)
	if i == 0 {
		job.read, job.at = sh.ledger, 1
		out(s, what)
		return
	}
	level, raised, named := true, job.target, false
	for part, p := range sh.ledger {
		named = named || job.target[part] != none
		for _, p := range []position{job.read[part], p} {
			if p.ahead(raised[part]) {
				raised[part] = p
			}
		}
		level = level && p == job.read[part] && p == raised[part]
	}
	if w.variant == oneTargetForAll && raised[1] != none {
		raised[1] = min(raised[0], w.end(1))
	}
	job.at, job.read = 0, idleJob.read
	switch {
	case level:
		job.phase, job.target = copiesParts, sh.ledger
		for i := range s.shards {
			s.shards[i].copy[j] = newCopy{}
		}
		if w.variant != oneIdentity {
			s.older.copy[j] = newCopy{}
		}
		what += ": all are level"
	case named && (w.variant == targetKept || w.variant == goneHoldIgnored):
		// It continues to wait.
	default:
		job.phase, job.target = namesTargets, raised
	}
	out(s, what)
}

// copyPart reads a part and writes it. These are two calls, but only the reading call's comparison
// depends on what happens between them, so the model makes them one step.
func (w *copies) copyPart(s copiesState, j int, out func(copiesState, string)) {
	job := &s.jobs[j]
	i, part := job.at/w.parts(), job.at%w.parts()
	sh := &s.shards[i]
	to := &sh.copy[j]
	if sh.ledger != job.target && w.variant != sourceUnread {
		w.again(s, j, "the source has moved", out)
		return
	}
	if w.faults.ban > 0 && sh.hold.by != int8(j+1) && w.variant != holdUnread {
		w.again(s, j, "its hold is gone", out)
		return
	}
	if to.parts != part && w.variant != progressUnread {
		w.again(s, j, "the new copy went back", out)
		return
	}
	to.parts++
	to.sealed = to.sealed || sh.sealed == sealedNow
	for p := range w.members {
		for e, m := range w.members[p] {
			hash := (m-1)%2 + 1
			if sh.banned && hash == 1 {
				hash = 3
			}
			if (m-1)/2 != i || hash != part+1 {
				continue
			}
			for range sh.window[p] >> (2 * e) & 3 {
				to.window[p] = to.window[p].add(1 << e)
			}
		}
	}
	job.goesOn(switches, shardCount*w.parts())
	out(s, w.say("job %d copies part %d of shard %d at %v", j, part, i, sh.ledger))
}

// switchOver is the one write that makes the new copy live. Later calls for the old copy count only
// in the old copy. generations.go models the checks of the switch in detail.
func (w *copies) switchOver(s copiesState, j int, out func(copiesState, string)) {
	if s.lockLost && w.variant != lockUncompared {
		w.again(s, j, "it has lost its lock", out)
		return
	}
	for _, sh := range s.shards {
		if sh.copy[j].parts != w.parts() && w.variant != progressUnread {
			w.again(s, j, "the new copy went back", out)
			return
		}
	}
	for i := range s.shards {
		sh := &s.shards[i]
		s.unsealed = s.unsealed || sh.sealed == sealedNow && !sh.copy[j].sealed
		*sh = copiedShard{ledger: s.jobs[j].target, window: sh.copy[j].window, banned: sh.banned, hold: noHold}
	}
	s.workers, s.late, s.lateTo = [2]copyWorker{}, copyCall{}, 0
	s.older, s.olderOf = copiedShard{}, -1
	what := w.say("job %d switches at %v", j, s.jobs[j].target)
	s.ends(j)
	s.switched = true
	out(s, what)
}
