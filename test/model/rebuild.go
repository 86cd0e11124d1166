package model

// rebuildSteps emits the steps of a rebuild beside the live consumers. It folds the log into a
// shadow, never past the live ledger, and swaps when both are at exactly the same position.
func (w *world) rebuildSteps(s state, out func(state, string)) {
	if s.rebuild != rebuilding {
		// An operator may always start a rebuild of a torn shard; other rebuilds are limited by the budget.
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
		w.swap(s, out)
	}
	if w.variant == shadowUnchecked && s.shadowWindow != 0 {
		t := s
		t.shadowWindow = 0
		out(t, "the shadow's lease lapses, and the rebuild doesn't know")
	}
	t = s
	t.rebuild, t.shadow, t.shadowWindow, t.hold = noRebuild, none, 0, false
	out(t, "the rebuild is killed, and what it left expires")
}

// swap replaces the live boards by the shadow, in one script. Over a torn ledger, the content of a
// kept window is unknown, since the torn piece may have changed it. The script refuses then, unless
// the operator accepts that the window is shown as incomplete from then on.
func (w *world) swap(s state, out func(state, string)) {
	what, accepted := w.say("the rebuild swaps at %v, over %v", s.shadow, s.ledger), s.damaged
	if s.torn && w.kept && w.variant != keptUnnamed {
		what, accepted = what+", torn, and names the window that it keeps", true
	}
	t := s
	t.window, t.ledger, t.torn, t.damaged = s.shadowWindow, s.shadow, false, accepted
	t.rebuild, t.shadow, t.shadowWindow, t.hold = swapped, none, 0, false
	out(t, what)
	if s.budget.death == 0 {
		return
	}
	// The first write marks the ledger. Then the script removes boards and moves others in their place:
	// nothing of the shadow is left that the rebuild could continue with.
	t = s
	t.budget.death--
	t.torn = w.variant != tornUnmarked
	t.rebuild, t.shadow, t.shadowWindow, t.hold = noRebuild, none, 0, false
	t.window = 0
	out(t, what+", and dies where the old is gone")
	t.window = s.shadowWindow
	out(t, what+", and dies where the new is there")
}

// rebuildFolds emits every position that the shadow can reach next. A torn ledger counts as the
// position before the torn piece.
func (w *world) rebuildFolds(s state, out func(state, string)) {
	to := func(next position) {
		t := s
		events := w.between(s.shadow.from(), next.end(), s.shadow.hash(), maxHash+1)
		if !next.isPlain() {
			events = w.between(s.shadow.from(), next.end(), s.shadow.hash(), next.hash())
		}
		t.shadow, t.shadowWindow = next, s.shadowWindow.add(events)
		out(t, w.say("the rebuild folds %v to %v, the live ledger is at %v", s.shadow, next, s.ledger))
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
