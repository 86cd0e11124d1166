package model

import "fmt"

// copies is one setting of a job that builds a second copy of the standings beside the live copy: the
// events, what the job does, the faults, and the broken rule.
type copies struct {
	narrator
	actor int8
	// members is indexed by partition, then by event. Members 1 and 2 are on the first shard, 3 and 4 on
	// the second, in the order of their hashes.
	members [][]int8
	way     copyWay
	workers int // worker k applies partition k % len(members)
	// jobs is the number of jobs that may run at once: the first may have lost its lease to the second.
	jobs    int
	faults  copyFaults
	variant copyRule
}

// copyWay is how the second copy becomes the live copy.
type copyWay uint8

const (
	reshards   copyWay = iota // pause, copy to other shards, switch
	renames                   // build from the log, rename shard by shard: every open window is replaced
	renamesOne                // the same, but one window is kept: the ledgers must be equal
)

// copyFaults limits how often each fault may still happen.
type copyFaults struct {
	crash    int8 // of a worker, which may leave a call on its way
	death    int8 // of a job
	lapse    int8 // of the hold of a running job
	rollback int8 // of one shard
	ban      int8 // the members with hash 1 are banned or unbanned
	seal     int8 // of one shard's window, by a leader that has taken the job's lease
}

// copyRule is a rule of the copy that is broken; "" breaks none.
type copyRule string

const (
	allHeld         copyRule = "a hold refuses pieces that continue a sweep"
	lowestFirst     copyRule = "a piece brings a shard without a sweep to a sweep's end"
	waitsInBatch    copyRule = "a worker waits with a held piece in hand"
	goneHoldIgnored copyRule = "a position counts although the hold is gone"
	targetKept      copyRule = "a target stays where it was first named"
	oneTargetForAll copyRule = "the target of one partition is that of all"
	startHeld       copyRule = "a start is refused although the hold names a target"
	oneIdentity     copyRule = "each attempt writes to the same new copy"
	sourceUnread    copyRule = "a call that reads a part doesn't compare the ledger"
	progressUnread  copyRule = "a call that writes a part doesn't compare how far the copy is"
	holdUnread      copyRule = "a call that reads a part doesn't compare the hold"
	banUnderHold    copyRule = "a ban is accepted under a hold"
	lockUncompared  copyRule = "a switch doesn't compare the job's lock"
	builtPast       copyRule = "a build goes past the live ledger"
	keptBehind      copyRule = "a window is kept although the ledgers differ"
	holdTrusted     copyRule = "a rename trusts the hold since the ledgers were compared"
	reopenedEarly   copyRule = "a final window is reopened below its seal's ledger"
)

// copyHold is the hold on one shard.
type copyHold struct {
	by     int8        // 0: no hold; otherwise the job, from 1 on
	target [2]position // per partition; none: no target
}

// newCopy is what one attempt of a job has built for one shard.
type newCopy struct {
	ledger position // of a build
	parts  int8     // of a copy: number of parts that it has
	sealed bool     // the window is final in it
	window [2]counts
}

// copiedShard is the whole state of one shard, which goes back in time together.
type copiedShard struct {
	ledger [2]position
	window [2]counts // per partition
	banned bool      // the standings of the members with hash 1 are in the hidden set
	hold   copyHold
	copy   [2]newCopy // per job

	kept, final counts // two more windows, if the job renames
	sealed      sealing
	sealedAt    position
}

type sealing uint8

const (
	open sealing = iota
	sealedNow
	reopened
)

// copiesState is one state of the whole model.
type copiesState struct {
	shards   [shardCount]copiedShard
	older    copiedShard // the state that one shard may go back to
	olderOf  int8        // that shard; -1: none
	workers  [2]copyWorker
	late     copyCall // of a worker that crashed
	lateTo   int8
	jobs     [2]copyJob
	switched bool
	lockLost bool // another leader has the lock
	unsealed bool // a switch reopened a final window
	faults   copyFaults
}

func (w *copies) space() space[copiesState] {
	begin := copiesState{olderOf: -1, faults: w.faults}
	for i := range begin.shards {
		sh := &begin.shards[i]
		sh.ledger = [2]position{plain(0), none} // other partitions start later
		sh.hold.target = [2]position{none, none}
	}
	for j := range begin.jobs {
		begin.jobs[j] = idleJob
	}
	return space[copiesState]{
		begin: begin,
		next: func(s copiesState, telling bool, emit func(copiesState, string)) {
			w.telling = telling
			w.next(s, emit)
		},
		wrong: w.wrong,
		done:  w.done,
		actor: func() int8 { return w.actor },
	}
}

// The processes to which weak fairness applies: workers and jobs by their numbers, and a timer.
const (
	fault       = 0
	firstWorker = 1
	firstJob    = 3
	timer       = 5
)

// next emits every state that can follow s.
func (w *copies) next(s copiesState, out func(copiesState, string)) {
	for k := range w.workers {
		w.actor = int8(firstWorker + k)
		w.workerSteps(s, k, out)
	}
	for j := range w.jobs {
		w.actor = int8(firstJob + j)
		switch {
		case s.jobs[j].phase == noJob:
			w.actor = fault
			if !s.switched && s.jobs[j].begun <= w.faults.death {
				t := s
				t.begins(w, j)
				out(t, w.say("job %d begins", j))
			}
		case s.jobs[j].phase == jobEnded:
		case w.way == reshards:
			w.reshardSteps(s, j, out)
		default:
			w.renameSteps(s, j, out)
		}
	}
	for i := range s.shards {
		w.holdSteps(s, i, out)
	}
	w.actor = fault
	w.faultSteps(s, out)
}

// holdSteps emits the expiry of a hold that no job renews, and of one that a job renews too late.
func (w *copies) holdSteps(s copiesState, i int, out func(copiesState, string)) {
	by := s.shards[i].hold.by
	if by == 0 {
		return
	}
	t := s
	t.shards[i].hold = noHold
	w.actor = timer
	if s.jobs[by-1].runs() {
		w.actor = fault
		if s.faults.lapse == 0 {
			return
		}
		t.faults.lapse--
	}
	out(t, w.say("the hold of shard %d lapses", i))
}

var noHold = copyHold{target: [2]position{none, none}}

func (w *copies) faultSteps(s copiesState, out func(copiesState, string)) {
	for k := range w.workers {
		w.crash(s, k, out)
	}
	if s.late.on {
		t := s
		t.late, t.lateTo = copyCall{}, 0
		out(t, "the late call is lost")
		result := w.execute(&t, int(s.lateTo), 0, s.late)
		out(t, w.say("shard %d is sent %v late: %v", s.lateTo, s.late, result))
	}
	for j := range w.jobs {
		if s.faults.death > 0 && s.jobs[j].runs() {
			t := s
			t.faults.death--
			t.jobs[j] = copyJob{begun: s.jobs[j].begun, target: idleJob.target, read: idleJob.read}
			out(t, w.say("job %d dies", j))
		}
	}
	for i, sh := range s.shards {
		if s.faults.rollback > 0 && s.olderOf < 0 {
			t := s
			t.faults.rollback--
			t.older, t.olderOf = sh, int8(i)
			out(t, w.say("the master of shard %d saves itself", i))
		}
		if s.faults.ban > 0 && (sh.hold.by == 0 || w.variant == banUnderHold) {
			t := s
			t.faults.ban--
			t.shards[i].banned = !sh.banned
			out(t, w.say("what the members with the hash 1 have moves in shard %d, as they are banned: %v", i, !sh.banned))
		}
		w.sealSteps(s, i, out)
	}
	if s.olderOf >= 0 {
		t := s
		t.shards[s.olderOf] = s.older
		t.older, t.olderOf = copiedShard{}, -1
		out(t, w.say("the master of shard %d goes back to %v", s.olderOf, s.older.ledger))
	}
}

// counted returns the events of a partition that a position counts in a shard.
func (w *copies) counted(part, shard int, p position) (events set) {
	if p == none {
		return 0
	}
	for e, m := range w.members[part] {
		hash := int(m-1)%2 + 1
		if int(m-1)/2 == shard && (e < p.from() || e < p.end() && hash < p.hash()) {
			events |= 1 << e
		}
	}
	return events
}

// between returns the events that a piece adds.
func (w *copies) between(part, shard int, from, to position) set {
	return w.counted(part, shard, to) &^ w.counted(part, shard, from)
}

// end returns the position at which all events of a partition count.
func (w *copies) end(part int) position { return plain(len(w.members[part])) }

func (w *copies) wrong(s copiesState) string {
	if s.unsealed {
		return "a final window is open after the switch"
	}
	for i, sh := range s.shards {
		for part := range w.members {
			want := counts(0).add(w.counted(part, i, sh.ledger[part]))
			if sh.window[part] != want {
				return fmt.Sprintf("the scores of shard %d are %v, and its ledger at %v denotes %v", i, sh.window[part], sh.ledger[part], want)
			}
			if w.way != reshards && sh.kept != want {
				return fmt.Sprintf("the kept scores of shard %d are %v, and its ledger at %v denotes %v", i, sh.kept, sh.ledger[part], want)
			}
		}
		if sh.final>>1&0x555 != 0 {
			return fmt.Sprintf("an event is in a final window of shard %d twice: %v", i, sh.final)
		}
	}
	return ""
}

// done reports whether every event counts, no job runs, and no hold is left.
func (w *copies) done(s copiesState) bool {
	for _, sh := range s.shards {
		for part := range w.members {
			if sh.ledger[part] != w.end(part) {
				return false
			}
		}
		if sh.hold.by != 0 {
			return false
		}
	}
	return !s.jobs[0].runs() && !s.jobs[1].runs()
}
