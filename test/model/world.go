package model

import "fmt"

// world is one setting to search: the events, the faults, and the broken rule.
type world struct {
	narrator
	hashes  []int // per event, the hash of its member, 1 to maxHash; 0: a bad event, without a member
	faults  budget
	kept    bool // a window exists that a rebuild keeps
	variant variant
}

// variant is a rule of the protocol that is broken; "" breaks none.
type variant string

const (
	notCompared     variant = "the ledger is not compared"
	atLeast         variant = "the ledger is compared by >= instead of =="
	resentUnfenced  variant = "a call that is sent again isn't fenced"
	tornUnmarked    variant = "a script that dies doesn't leave the ledger torn"
	tornIgnored     variant = "a torn ledger is taken for its position"
	outOfOrder      variant = "a sweep takes the highest hash first"
	boundTaken      variant = "a piece takes the hash bound itself"
	endForgotten    variant = "a takeover forgets the sweep's end"
	hashForgotten   variant = "a takeover forgets the sweep's hash"
	stopsBehind     variant = "a worker stops when the ledger is ahead of it"
	neverLooks      variant = "an idle worker doesn't look at its ledger"
	lettersAtEnd    variant = "dead letters are written only by who ends the sweep"
	swapsAtLeast    variant = "a rebuild swaps at or past the live ledger"
	shadowUnchecked variant = "a swap doesn't look whether the shadow is still there"
	keptUnnamed     variant = "a rebuild over a torn ledger keeps a window and doesn't name it"
	twoHistories    variant = "Redis keeps or loses scores and ledger apart"
)

func (w *world) space() space[state] {
	begin := state{budget: w.faults}
	begin.ledger, begin.shadow = none, none
	for i := range begin.network {
		begin.network[i].waiter = nobody
	}
	return space[state]{
		begin: canonical(begin),
		next:  func(s state, telling bool, emit func(state, string)) { w.telling = telling; w.next(s, emit) },
		wrong: w.wrong,
		done:  func(s state) bool { return s.ledger == w.all() && !s.torn },
	}
}

// all returns the position at the end, where every event counts.
func (w *world) all() position { return plain(len(w.hashes)) }

// between returns the events of [from, end) whose member's hash is in [low, high).
func (w *world) between(from, end, low, high int) (events set) {
	for i := from; i < end; i++ {
		if h := w.hashes[i]; h >= max(low, 1) && h < high {
			events |= 1 << i
		}
	}
	return events
}

// denoted returns how often each event counts according to a position.
func (w *world) denoted(p position) counts {
	if p == none {
		return 0
	}
	return counts(0).add(w.between(0, p.from(), 0, maxHash+1) | w.between(p.from(), p.end(), 0, p.hash()))
}

func (w *world) wrong(s state) string {
	if s.torn {
		return "" // the scores can have any value, and no consumer continues
	}
	d := w.denoted(s.ledger)
	switch {
	case s.window != d:
		return fmt.Sprintf("the scores are %v, and the ledger at %v denotes %v", s.window, s.ledger, d)
	case w.kept && !s.damaged && s.kept != d:
		return fmt.Sprintf("the scores of the kept window are %v, and the ledger at %v denotes %v", s.kept, s.ledger, d)
	}
	for i, h := range w.hashes {
		if h == 0 && s.ledger != none && s.ledger.from() > i && !s.letters.has(i) {
			return fmt.Sprintf("the bad event %d is passed and not among the dead letters", i)
		}
	}
	return ""
}

// next emits every state that can follow s.
func (w *world) next(s state, emit func(state, string)) {
	out := func(t state, what string) { emit(canonical(t), what) }
	for k := range s.consumers {
		w.consumerSteps(s, k, out)
	}
	for i := range s.network {
		if s.network[i].on {
			w.execute(s, i, out)
			t := s
			t.network[i] = call{waiter: nobody}
			out(t, w.say("the call %v is lost", s.network[i]))
		}
	}
	w.redisSteps(s, out)
	w.rebuildSteps(s, out)
}

// redisSteps emits Redis's own faults: it saves a state, goes back, or is wiped.
func (w *world) redisSteps(s state, out func(state, string)) {
	if s.budget.rollback > 0 && !s.hasOlder {
		t := s
		t.older, t.hasOlder = s.redis, true
		out(t, "Redis saves itself")
	}
	if s.hasOlder {
		t := s
		t.redis, t.older, t.hasOlder = s.older, redis{}, false
		t.budget.rollback--
		if w.variant == twoHistories {
			t.ledger = s.ledger
		}
		out(t, w.say("Redis goes back to %v", t.ledger))
	}
	if s.budget.wipe > 0 {
		t := s
		t.redis = redis{ledger: none, shadow: none}
		t.budget.wipe--
		out(t, "Redis is wiped")
	}
}
