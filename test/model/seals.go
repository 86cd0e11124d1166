package model

// seals is one setting of final windows to search: each event's shard, the faults, and the broken
// rule. By their times, all events belong in one window; the one partition has a ledger on each of two
// shards.
type seals struct {
	narrator
	members []int8 // per event, its shard
	faults  sealFaults
	variant sealRule
}

// sealFaults limits how often each fault may still happen.
type sealFaults struct{ crash, rollback, reopen int8 }

// sealRule is a rule of final windows that is broken; "" breaks none.
type sealRule string

const (
	endBeforeDue   sealRule = "the log's end is looked up before the window is due"
	ledgerUnread   sealRule = "a seal doesn't compare the ledger"
	oneForAll      sealRule = "what is final on one shard is left out on all"
	sealIgnored    sealRule = "a piece is added to what is final"
	leftOutUnread  sealRule = "a piece isn't compared for what it leaves out"
	oneShardSealed sealRule = "a window is taken for final once one shard has it sealed"
	reopenUnnoted  sealRule = "nobody notes that a seal was taken back"
	passedUnnoted  sealRule = "nobody notes what passed by until a seal was taken back"
)

// sealShard is one master's state of the window, which goes back in time together.
type sealShard struct {
	ledger   int8
	window   set // events in the window
	final    bool
	revision int8 // of the last seal
	at       int8 // the ledger at the last seal
	was      set  // the window at the last seal
	reopened bool // the seal was taken back since, according to what is noted
	taken    bool // the seal was taken back since, in fact
	passed   set  // events that arrived while it was final before, as noted when the seal was taken back
	same     bool // it is final with the revision that it had before it was reopened
}

// sealCall is a piece on its way to a shard.
type sealCall struct {
	on             bool
	expected, next int8
	events         set
	without        bool // it omits the window for some event
}

// sealPhase is the sealer's phase. The sealer may pause in each for any time.
type sealPhase uint8

const (
	sealerIdle sealPhase = iota
	sealerDue            // it has found that the window is due
	sealerEnds           // and has then looked up the log's end
)

type sealState struct {
	shards  [2]sealShard
	older   sealShard // the state that one master may go back to
	olderOf int8      // that master; -1: none
	log     int8      // number of events in the log
	closed  int8      // number of events in the log when the window closed; -1: the window is open
	known   [2]bool   // per shard, whether the worker omits the window
	calls   [2]sealCall
	phase   sealPhase
	end     int8 // the log's end as the sealer knows it
	faults  sealFaults
}

func (w *seals) space() space[sealState] {
	return space[sealState]{
		begin: sealState{olderOf: -1, closed: -1, end: -1, faults: w.faults},
		next: func(s sealState, telling bool, emit func(sealState, string)) {
			w.telling = telling
			w.world(s, emit)
			w.sealer(s, emit)
			for i := range s.shards {
				w.worker(s, i, emit)
				w.master(s, i, emit)
			}
		},
		wrong: w.wrong,
		done: func(s sealState) bool {
			n := int8(len(w.members))
			return s.log == n && s.shards[0].final && s.shards[1].final && s.shards[0].ledger == n && s.shards[1].ledger == n
		},
	}
}

// world appends an event, or closes the window: its end plus lateness is past by every clock. It also
// crashes the process.
func (w *seals) world(s sealState, emit func(sealState, string)) {
	if int(s.log) < len(w.members) {
		n := s
		n.log++
		emit(n, w.say("event %d is appended, of shard %d", s.log, w.members[s.log]))
	}
	if s.closed < 0 {
		n := s
		n.closed = s.log
		emit(n, w.say("the window takes no events any more; the log ends at %d", s.log))
	}
	if s.faults.crash > 0 { // a call that it sent may still arrive
		n := s
		n.faults.crash--
		n.known = [2]bool{}
		n.phase, n.end = sealerIdle, -1
		emit(n, w.say("the process crashes: who takes over knows nothing"))
	}
}

// sealer finds the window due, looks up the log's end, and seals a shard.
func (w *seals) sealer(s sealState, emit func(sealState, string)) {
	if w.variant == endBeforeDue && s.phase == sealerIdle && s.end < 0 {
		n := s
		n.end = s.log
		emit(n, w.say("the sealer finds that the log ends at %d", s.log))
	}
	if s.phase == sealerIdle && s.closed >= 0 {
		n := s
		if n.phase = sealerDue; s.end >= 0 {
			n.phase = sealerEnds
		}
		emit(n, w.say("the sealer finds the window due"))
	}
	if s.phase == sealerDue {
		n := s
		n.phase, n.end = sealerEnds, s.log
		emit(n, w.say("the sealer finds that the log ends at %d", s.log))
	}
	if s.phase != sealerEnds {
		return
	}
	n := s
	n.phase, n.end = sealerIdle, -1
	emit(n, w.say("the sealer is through"))
	for i := range s.shards {
		sh := s.shards[i]
		if sh.final || sh.ledger < s.end && w.variant != ledgerUnread || w.variant == oneShardSealed && s.shards[1-i].final {
			continue
		}
		least := s.shards[1-i].next()
		revision := max(sh.next(), least)
		sh.same = sh.taken && revision <= sh.revision
		sh.revision, sh.final, sh.reopened, sh.taken = revision, true, false, false
		sh.at, sh.was = sh.ledger, sh.window
		n := s
		n.shards[i] = sh
		emit(n, w.say("shard %d is sealed as revision %d, its ledger at %d", i, sh.revision, sh.at))
	}
}

// next returns the revision that a seal would have now.
func (sh *sealShard) next() int8 {
	if sh.reopened || sh.revision == 0 {
		return sh.revision + 1
	}
	return sh.revision
}

// worker sends a piece to a shard, and handles the answer.
func (w *seals) worker(s sealState, i int, emit func(sealState, string)) {
	sh := s.shards[i]
	if c := s.calls[i]; !c.on {
		for to := sh.ledger + 1; to <= s.log; to++ {
			c := sealCall{on: true, expected: sh.ledger, next: to}
			for e := sh.ledger; e < to; e++ {
				switch {
				case int(w.members[e]) != i:
				case s.known[i] || w.variant == oneForAll && s.known[1-i]:
					c.without = true
				default:
					c.events |= 1 << e
				}
			}
			n := s
			n.calls[i] = c
			emit(n, w.say("the worker sends shard %d what it counts of [%d, %d): %b", i, c.expected, c.next, c.events))
		}
	} else {
		n := s
		n.calls[i] = sealCall{}
		switch {
		case sh.ledger != c.expected:
			emit(n, w.say("shard %d refuses it: its ledger is at %d", i, sh.ledger))
		case !sh.final && c.without && w.variant != leftOutUnread:
			n.known[i] = false
			emit(n, w.say("shard %d refuses it: the window that it leaves out isn't final", i))
		case sh.final && c.events != 0 && w.variant != sealIgnored:
			n.known[i] = true
			emit(n, w.say("shard %d refuses it: the window is final", i))
		default:
			n.shards[i].ledger = c.next
			n.shards[i].window |= c.events
			emit(n, w.say("shard %d adds it, its ledger is at %d", i, c.next))
		}
	}
}

// master emits the faults of a shard: its seal is taken back, it is saved, it goes back.
func (w *seals) master(s sealState, i int, emit func(sealState, string)) {
	sh := s.shards[i]
	if sh.final && s.faults.reopen > 0 {
		n := s
		n.faults.reopen--
		n.shards[i].final, n.shards[i].reopened = false, w.variant != reopenUnnoted
		n.shards[i].taken = true
		if w.variant != passedUnnoted {
			n.shards[i].passed |= w.of(i, sh.at, sh.ledger)
		}
		emit(n, w.say("the seal of shard %d is taken back", i))
	}
	if s.faults.rollback > 0 && s.olderOf < 0 {
		n := s
		n.older, n.olderOf = sh, int8(i)
		emit(n, w.say("the master of shard %d saves itself", i))
	}
	if s.faults.rollback > 0 && s.olderOf == int8(i) && s.older != sh {
		n := s
		n.faults.rollback--
		n.shards[i], n.older, n.olderOf = s.older, sealShard{}, -1
		emit(n, w.say("the master of shard %d goes back", i))
	}
}

// of returns the events of [from, to) on a shard.
func (w *seals) of(shard int, from, to int8) (events set) {
	for e := from; e < to; e++ {
		if int(w.members[e]) == shard {
			events |= 1 << e
		}
	}
	return events
}

// wrong describes the violation in a state. Whatever happens to seals, an event that was in the log
// before the window closed is in the window once the ledger has passed it.
func (w *seals) wrong(s sealState) string {
	for i := range s.shards {
		sh := &s.shards[i]
		counted := w.of(i, 0, sh.ledger) // before the window closed
		if s.closed >= 0 {
			counted = w.of(i, 0, min(sh.ledger, s.closed))
		}
		in := w.of(i, 0, sh.at) &^ sh.passed // what the seals' ledgers count
		switch {
		case counted&^sh.window != 0:
			return "what came before the window closed isn't in it, and its ledger is past it"
		case !sh.final:
		case sh.window != sh.was:
			return "a final window has changed"
		case sh.at < s.closed:
			return "a window is final without what was in the log before it closed"
		case sh.window&^in != 0:
			return "more is in a final window than its seals' ledgers say"
		case in&^sh.window != 0:
			return "less is in a final window than its seals' ledgers say"
		case sh.same:
			return "a window that was reopened is final as the same revision"
		}
	}
	return ""
}
