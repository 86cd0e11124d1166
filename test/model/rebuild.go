package model

import "fmt"

// rebuildSteps are a rebuild beside the live consumers: it folds the log into a shadow,
// never past the live ledger, and swaps where both stand at the very same position.
func (w *world) rebuildSteps(s state, out func(state, string)) {
	if s.rebuild != rebuilding {
		// Whoever finds a torn shard can ask for one; else there are as many as the
		// budget has.
		if s.budget.rebuild > 0 || s.torn {
			t := s
			t.budget.rebuild = max(0, t.budget.rebuild-1)
			t.rebuild, t.shadow, t.shadowWindow, t.hold = rebuilding, plain(0), 0, false
			out(t, "a rebuild begins")
		}
		return
	}
	w.rebuildFolds(s, out)
	t := s
	t.hold = !s.hold
	if t.hold {
		out(t, "the rebuild takes the hold")
	} else {
		out(t, "the hold's lease lapses")
	}
	if s.hold && s.shadow == s.ledger || w.variant == swapsAtLeast && s.hold && s.shadow.isPlain() && s.ledger != none && s.shadow.from() >= s.ledger.end() {
		t := s
		t.window, t.ledger, t.torn = s.shadowWindow, s.shadow, false
		t.rebuild, t.shadow, t.shadowWindow, t.hold = swapped, none, 0, false
		out(t, fmt.Sprintf("the rebuild swaps at %v, over %v", s.shadow, s.ledger))
	}
	t = s
	t.rebuild, t.shadow, t.shadowWindow, t.hold = noRebuild, none, 0, false
	out(t, "the rebuild is killed, and what it left expires")
}

// rebuildFolds are the positions that the shadow can come to next. A torn ledger counts
// as the position before the piece that was torn.
func (w *world) rebuildFolds(s state, out func(state, string)) {
	to := func(next position) {
		t := s
		events := w.between(s.shadow.from(), next.end(), s.shadow.hash(), maxHash+1)
		if !next.isPlain() {
			events = w.between(s.shadow.from(), next.end(), s.shadow.hash(), next.hash())
		}
		t.shadow, t.shadowWindow = next, s.shadowWindow.add(events)
		out(t, fmt.Sprintf("the rebuild folds %v to %v, the live ledger is at %v", s.shadow, next, s.ledger))
	}
	live, at := s.ledger, s.shadow
	if live == none {
		return
	}
	limit := live.from()
	if w.variant == swapsAtLeast {
		limit = len(w.hashes)
	}
	switch {
	case at.isPlain():
		for end := at.from() + 1; end <= limit; end++ {
			to(plain(end))
		}
		if at.from() == live.from() && !live.isPlain() {
			to(live)
		}
	case live.from() >= at.end():
		to(plain(at.end()))
	case live.from() == at.from() && live.end() == at.end() && live.hash() > at.hash():
		to(live)
	}
}
