package model

import "fmt"

// consumerSteps emits what consumer k can do, and its crash.
func (w *world) consumerSteps(s state, k int, out func(state, string)) {
	c := s.consumers[k]
	if !c.waiting && !c.stopped {
		// Reading the ledger, choosing a piece and sending it are one step: whatever happens between
		// them can also happen while the call is on its way.
		w.goOn(s, k, s.ledger, s.torn, w.say("consumer %d reads the ledger: %v", k, s.ledger), out)
	}
	if c.waiting {
		w.sendAgain(s, k, out)
	}
	if s.budget.crash > 0 && (c.waiting || c.stopped) {
		t := s
		t.budget.crash--
		t.giveUp(k)
		t.consumers[k] = consumer{}
		out(t, w.say("consumer %d crashes, another takes its place", k))
	}
}

// sendAgain emits a timeout: the first call may be lost, or may still be executed.
func (w *world) sendAgain(s state, k int, out func(state, string)) {
	flies := s.flies(k)
	if flies && s.budget.timeout == 0 {
		return
	}
	t := s
	if flies {
		t.budget.timeout--
		t.giveUp(k)
	}
	c := s.consumers[k]
	if t.send(call{waiter: int8(k), resent: w.variant == resentUnfenced, expected: c.expected, next: c.next, events: c.events}) {
		out(t, w.say("consumer %d has no answer, and sends %v to %v again", k, c.expected, c.next))
	}
}

// goOn continues consumer k with the ledger as k knows it: the consumer sends any piece that the
// protocol permits, or has nothing to do.
func (w *world) goOn(s state, k int, at position, torn bool, what string, out func(state, string)) {
	s.consumers[k] = consumer{}
	switch {
	case torn && w.variant != tornIgnored:
		out(s, what+", torn: it halts") // and reads the ledger again
		return
	case at == w.all():
		s.consumers[k].stopped = w.variant == neverLooks
		out(s, what+", all is done")
		return
	}
	w.pieces(at, func(next position, events set) {
		t := s
		if at.isPlain() && (w.variant != lettersAtEnd || next.isPlain()) {
			// Kafka acknowledges all dead letters of the batch before the first piece is sent.
			for i := at.from(); i < next.end(); i++ {
				if w.hashes[i] == 0 {
					t.letters |= 1 << i
				}
			}
		}
		t.consumers[k] = consumer{waiting: true, expected: at, next: next, events: events}
		if t.send(call{waiter: int8(k), expected: at, next: next, events: events}) {
			out(t, w.say("%s, consumer %d sends %v to %v with %v", what, k, at, next, events))
		}
	})
}

// pieces emits every piece that may follow a position. A new batch may end anywhere; a sweep that was
// begun ends at its own end and proceeds upwards by hash.
func (w *world) pieces(at position, out func(next position, events set)) {
	if at == none {
		out(plain(0), 0) // the start: nothing counts yet
		return
	}
	first, last := at.end(), at.end()
	if at.isPlain() || w.variant == endForgotten {
		first, last = at.from()+1, len(w.hashes)
	}
	low := at.hash()
	if w.variant == hashForgotten {
		low = 0
	}
	for end := first; end <= last; end++ {
		highest := 0
		for i := at.from(); i < end; i++ {
			highest = max(highest, w.hashes[i])
		}
		for bound := at.hash() + 1; bound <= highest; bound++ {
			if w.between(at.from(), end, at.hash(), bound) == 0 {
				continue // each piece has at least one member
			}
			switch w.variant {
			case outOfOrder:
				out(sweeping(at.from(), end, bound), w.between(at.from(), end, highest, highest+1))
			case boundTaken:
				out(sweeping(at.from(), end, bound), w.between(at.from(), end, low, bound+1))
			default:
				out(sweeping(at.from(), end, bound), w.between(at.from(), end, low, bound))
			}
		}
		out(plain(end), w.between(at.from(), end, low, maxHash+1))
	}
}

// execute lets Redis carry out a call atomically.
func (w *world) execute(s state, i int, out func(state, string)) {
	c := s.network[i]
	if s.hold {
		return // The answer is "held", and the consumer sends the call again: the same as waiting.
	}
	found, torn := s.ledger, s.torn
	applied := w.fenceOpens(s, c)
	s.network[i] = call{waiter: nobody}
	what := w.say("Redis finds %v", found)
	if applied {
		what = w.say("Redis applies %v to %v with %v", c.expected, c.next, c.events)
		if s.budget.death > 0 && c.events != 0 {
			t := s
			t.budget.death--
			t.torn = w.variant != tornUnmarked
			t.window = s.window.add(c.events)
			if w.kept {
				out(t, what+", and dies before it writes the window that is kept")
			}
			t.kept = s.kept.add(c.events)
			out(t, what+", and dies before it writes the ledger")
		}
		s.window, s.kept, s.ledger = s.window.add(c.events), s.kept.add(c.events), c.next
		s.torn = false
	}
	out(s, what+", the answer is lost")
	if c.waiter == nobody {
		return
	}
	k := int(c.waiter)
	behind := s.consumers[k]
	switch {
	case applied || found == c.next && !torn:
		w.goOn(s, k, c.next, false, what, out)
	case w.variant == stopsBehind && found.ahead(behind.expected):
		s.consumers[k] = consumer{stopped: true}
		out(s, what+": someone else is ahead")
	default:
		w.goOn(s, k, found, torn, what, out)
	}
}

// fenceOpens reports whether apply.lua's comparison of the ledger lets the call write.
func (w *world) fenceOpens(s state, c call) bool {
	switch {
	case w.variant == notCompared, w.variant == resentUnfenced && c.resent:
		return true
	case w.variant == atLeast:
		return !s.torn && (s.ledger == c.expected || s.ledger != none && c.expected != none && s.ledger.from() >= c.expected.from())
	case w.variant == tornIgnored:
		return s.ledger == c.expected
	}
	return !s.torn && s.ledger == c.expected
}

func (c call) String() string { return fmt.Sprintf("%v to %v", c.expected, c.next) }

// send puts a call on the network. It returns false if the network is full.
func (s *state) send(c call) bool {
	for i := range s.network {
		if !s.network[i].on {
			c.on = true
			s.network[i] = c
			return true
		}
	}
	return false
}

// flies reports whether the call that consumer k waits for is still on its way.
func (s *state) flies(k int) bool {
	for _, c := range s.network {
		if c.on && c.waiter == int8(k) {
			return true
		}
	}
	return false
}

// giveUp makes consumer k stop waiting for its calls, which stay on the network.
func (s *state) giveUp(k int) {
	for i := range s.network {
		if s.network[i].waiter == int8(k) {
			s.network[i].waiter = nobody
		}
	}
}
