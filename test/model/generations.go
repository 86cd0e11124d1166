package model

// generations is one setting to search for copies of the standings that replace each other as the live
// copy: the faults, and the broken rule.
type generations struct {
	narrator
	actor   int8
	workers int
	jobs    int // number that may run at once: the first may have lost its lease
	faults  generationFaults
	variant generationRule
}

// generationFaults limits how often each fault may still happen.
type generationFaults struct {
	death    int8 // of a job
	restart  int8 // of a worker
	apart    int8 // one master goes back
	together int8 // all of Redis goes back
	wipe     int8 // the master of {0}, with the record, is lost
	ban      int8
}

// generationRule is a rule of generations that is broken; "" breaks none.
type generationRule string

const (
	numberIsName    generationRule = "the keys of a copy have the generation's number, and no id of the attempt"
	bornLive        generationRule = "a shard of a new copy names itself as live before the switch"
	backByNumber    generationRule = "a switch back writes the earlier record again"
	expiryKept      generationRule = "a shard that learns that its copy is live again keeps its expiry"
	emptyStarted    generationRule = "a shard without its completion mark is taken for an empty one"
	switchBlind     generationRule = "a switch doesn't compare the record"
	recordUnread    generationRule = "a worker looks at its shards alone, not at the record"
	schemaUnread    generationRule = "a call doesn't compare what its shard knows"
	commitTrusted   generationRule = "a lost record is restored from the commits alone"
	configured      generationRule = "a lost record is written by the configuration"
	bansOnce        generationRule = "a replica that moves to another copy has its bans applied already"
	doneUnmarked    generationRule = "a job is done once it has switched"
	doneUnconfirmed generationRule = "a job reports its switch without reading the record again"
	oldUnmarked     generationRule = "the shards of the old copy learn of no switch"
	markNotFollows  generationRule = "a record that is older than a mark is left as it is"
)

const (
	copyCount   = 3 // the first copy, and one for each job
	logEnd      = 1 // of both shards
	noShard     = -1
	allInLine   = 1<<shardCount - 1
	firstNumber = 1
)

// generationFault is a violation by a step.
type generationFault uint8

const (
	refilledBesideWhole generationFault = iota + 1
	liveOverwritten
	neverSwitched
	wentBehind
)

func (f generationFault) String() string {
	return [...]string{
		"",
		"a shard is refilled from the log, though a whole copy is there",
		"a job writes to the live copy",
		"a copy is live that no switch has named",
		"a switch goes behind the live copy that it does not know",
	}[f]
}

// liveCopy is the text of lb:{0}:generation: the generation's number, and the live copy.
type liveCopy struct{ number, copy int8 }

func (r liveCopy) newer(than liveCopy) bool { return r.number > than.number }

// shardOfCopy is one shard of one copy. It is live if the record that it knows names its copy.
type shardOfCopy struct {
	ledger  int8 // noShard: the shard does not exist, or lacks its completion mark
	knows   liveCopy
	banned  bool
	expires bool
}

// copiesInRedis is the whole state of Redis. Master i has the shards i; master 0 also has the record.
type copiesInRedis struct {
	record liveCopy // number 0: no record
	shards [copyCount][shardCount]shardOfCopy
}

// replica is a process that applies events and bans, and answers requests.
type replica struct {
	record liveCopy // number 0: it knows no record
	met    liveCopy // a mark that it met, until it has read the record
	inLine set      // the shards in which it has applied its bans
}

// generationJob is a job's memory.
type generationJob struct {
	phase  generationPhase
	at     int8
	copy   int8
	source liveCopy
}

type generationPhase uint8

const (
	jobWaits generationPhase = iota
	jobCopies
	jobChecks
	jobSwitches
	jobMarks
	jobConfirms
	jobDone
)

type generationsState struct {
	copiesInRedis
	older     copiesInRedis
	olderOf   set // the masters that may go back to it
	workers   [2]replica
	jobs      [2]generationJob
	committed liveCopy // in Kafka
	banned    bool     // in Kafka
	promised  liveCopy // the record of the newest switch that was reported
	faults    generationFaults
	named     set // the copies that a switch has named
	violated  generationFault
}

func (w *generations) space() space[generationsState] {
	var begin generationsState
	begin.record, begin.faults, begin.named = liveCopy{firstNumber, 0}, w.faults, 1
	for c := range begin.shards {
		for i := range begin.shards[c] {
			begin.shards[c][i] = shardOfCopy{ledger: noShard}
			if c == 0 {
				begin.shards[c][i] = shardOfCopy{knows: begin.record}
			}
		}
	}
	return space[generationsState]{
		begin: begin,
		next: func(s generationsState, telling bool, emit func(generationsState, string)) {
			w.telling = telling
			w.next(s, emit)
		},
		wrong: w.wrong,
		done:  w.done,
		actor: func() int8 { return w.actor },
	}
}

func (w *generations) next(s generationsState, out func(generationsState, string)) {
	for k := range w.workers {
		w.actor = int8(firstWorker + k)
		w.workerSteps(s, k, out)
	}
	for j := range w.jobs {
		w.actor = int8(firstJob + j)
		w.jobSteps(s, j, out)
	}
	w.actor = timer
	w.remedy(s, out)
	w.actor = fault
	w.faultSteps(s, out)
}

func (w *generations) wrong(s generationsState) string {
	if s.violated != 0 {
		return s.violated.String()
	}
	for k := range w.workers {
		c := s.workers[k]
		if c.record != s.record || c.record.number == 0 || c.inLine != allInLine || !s.banned {
			continue
		}
		for _, sh := range s.shards[c.record.copy] {
			if sh.ledger != noShard && !sh.banned {
				return "a replica that has applied its bans and checked the record shows a banned member"
			}
		}
	}
	return ""
}

// done reports whether all shards and replicas use one record, whose copy is whole and at the log's
// end. A switch that was reported is in force, also after the master of {0} alone went back.
func (w *generations) done(s generationsState) bool {
	if s.promised.newer(s.record) {
		return false
	}
	for _, sh := range s.shards[s.record.copy] {
		if s.record.number == 0 || sh.ledger != logEnd || sh.knows != s.record || sh.banned != s.banned || sh.expires {
			return false
		}
	}
	for k := range w.workers {
		if s.workers[k].record != s.record || s.workers[k].met.number != 0 {
			return false
		}
	}
	for _, j := range s.jobs {
		if j.phase != jobWaits && j.phase != jobDone {
			return false
		}
	}
	return true
}

// whole reports whether all shards of a copy exist.
func (r *copiesInRedis) whole(c int8) bool {
	for _, sh := range r.shards[c] {
		if sh.ledger == noShard {
			return false
		}
	}
	return true
}

// raise is the script by which a shard learns of a newer record. A copy that is not live gets an
// expiry.
func (w *generations) raise(s *generationsState, c int8, i int, to liveCopy) {
	if sh := &s.shards[c][i]; sh.ledger != noShard && to.newer(sh.knows) {
		sh.knows, sh.expires = to, to.copy != c || sh.expires && w.variant == expiryKept
	}
}

// faultSteps emits masters that go back or are lost, replicas that restart, jobs that die, and a ban.
func (w *generations) faultSteps(s generationsState, out func(generationsState, string)) {
	if s.faults.ban > 0 {
		t := s
		t.faults.ban--
		t.banned = true
		for k := range t.workers {
			t.workers[k].inLine = 0
		}
		out(t, "a member is banned")
	}
	for j := range w.jobs {
		if p := s.jobs[j].phase; s.faults.death > 0 && p != jobWaits && p != jobDone {
			t := s
			t.faults.death--
			t.jobs[j] = generationJob{phase: jobDone}
			out(t, w.say("job %d dies", j))
		}
	}
	for k := range w.workers {
		if s.faults.restart > 0 && s.workers[k] != (replica{}) {
			t := s
			t.faults.restart--
			t.workers[k] = replica{}
			out(t, w.say("replica %d restarts", k))
		}
	}
	save := func(masters set, left *int8, t *generationsState) {
		if *left > 0 && s.olderOf == 0 {
			*left--
			t.older, t.olderOf = s.copiesInRedis, masters
			out(*t, w.say("what masters %v have is saved", masters))
		}
	}
	for m := range shardCount {
		t := s
		save(1<<m, &t.faults.apart, &t)
	}
	t := s
	save(allInLine, &t.faults.together, &t)
	if s.olderOf != 0 {
		w.goBack(s, out)
	}
	if s.faults.wipe > 0 {
		t := s
		t.faults.wipe--
		t.record = liveCopy{}
		for c := range t.shards {
			t.shards[c][0] = shardOfCopy{ledger: noShard}
		}
		out(t, "the master of {0} is lost")
	}
}

// goBack restores the saved state. Replicas then read the bans again.
func (w *generations) goBack(s generationsState, out func(generationsState, string)) {
	for m := range shardCount {
		if !s.olderOf.has(m) {
			continue
		}
		if m == 0 {
			s.record = s.older.record
		}
		for c := range s.shards {
			s.shards[c][m] = s.older.shards[c][m]
		}
	}
	masters := s.olderOf
	s.older, s.olderOf = copiesInRedis{}, 0
	if masters != 1<<0 || w.faults.apart > 1 {
		s.promised = liveCopy{} // only if master 0 goes back alone do the other shards still know of the switch
	}
	for k := range s.workers {
		s.workers[k].inLine = 0
	}
	out(s, w.say("masters %v go back, the record is %v", masters, s.record))
}
