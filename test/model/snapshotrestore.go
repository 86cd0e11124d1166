package model

// Restoring: the rows are loaded into a shadow, one call after another, each of which compares how
// many there are; then the shadow gets a ledger, at the first offset that isn't sure to be in every
// row, and the log is folded into it, without what each row has. Past all pages it is what any
// rebuild's shadow is, and is swapped in where the live ledger denotes the same, or is gone.

func (w *snapshots) restores(s snapState, emit func(snapState, string)) {
	if !s.restorer.on {
		w.takes(s, emit)
		return
	}
	t := s
	t.restorer = snapRestorer{}
	emit(t, "the restore is killed")
	if w.variant == inPlace {
		w.loadsInPlace(s, emit)
		return
	}
	switch {
	case s.shadow.of != s.file.token:
		// It is gone: the killed one above is all that can follow.
	case s.restorer.next < w.rows():
		w.loads(s, emit)
	case s.shadow.ledger == none:
		if s.shadow.loaded == w.rows() || w.variant == loadUnfenced || w.variant == loadForgotten {
			t := s
			t.shadow.ledger = plain(w.replayFrom(&s.file))
			emit(t, w.say("the shadow's ledger begins at %v", t.shadow.ledger))
		}
	default:
		w.folds(s, emit)
		w.swaps(s, emit)
	}
}

// takes begins a restore, or goes on with one that was killed.
func (w *snapshots) takes(s snapState, emit func(snapState, string)) {
	if s.shadow.of != 0 {
		t := s
		t.shadow = snapShadow{ledger: none}
		emit(t, "the shadow of a restore expires")
		if s.shadow.of == s.file.token || w.variant == shadowOfOther && s.file.token != 0 {
			t := s
			t.restorer = snapRestorer{on: true, next: s.shadow.loaded}
			if w.variant == loadForgotten {
				t.restorer.next = w.rows()
			}
			t.shadow.of = s.file.token
			emit(t, w.say("another goes on with the restore, %d rows of which are loaded", s.shadow.loaded))
		}
	} else if s.file.token != 0 && s.budget.restores > 0 {
		t := s
		t.restorer.on = true
		t.budget.restores--
		t.shadow = snapShadow{of: s.file.token, ledger: none}
		emit(t, "a restore is begun")
	}
}

func (w *snapshots) loads(s snapState, emit func(snapState, string)) {
	if s.shadow.loaded != s.restorer.next && w.variant != loadUnfenced {
		return // it can only be killed
	}
	t := s
	i, m := w.row(s.restorer.next)
	t.shadow.scores[i] = t.shadow.scores[i].add(s.file.rows[i][m].events)
	t.restorer.next++
	t.shadow.loaded = t.restorer.next
	emit(t, w.say("member %d of window %d is loaded: %v", m, i, s.file.rows[i][m]))
}

// row is the nth window and member of those that can have a standing, and rows how many there are.
func (w *snapshots) row(n int8) (window, member int) {
	for i := range snapWindows {
		for m := 1; m <= maxHash; m++ {
			if w.of(w.counted(plain(len(w.events))), i, m) == 0 {
				continue
			}
			if n == 0 {
				return i, m
			}
			n--
		}
	}
	return snapWindows, 0
}

func (w *snapshots) rows() (n int8) {
	for {
		if i, _ := w.row(n); i == snapWindows {
			return n
		}
		n++
	}
}

// loadsInPlace is a variant: the ledger first, then all rows.
func (w *snapshots) loadsInPlace(s snapState, emit func(snapState, string)) {
	if s.ledger != none {
		return
	}
	t := s
	t.ledger = plain(w.replayFrom(&s.file))
	t.restorer, t.shadow = snapRestorer{}, snapShadow{ledger: none}
	emit(t, "the ledger is written, and then rows are")
}

func (w *snapshots) replayFrom(f *snapFile) int {
	from := f.begin.from()
	if w.variant == highestReplayed {
		for i := range f.rows {
			for _, r := range f.rows[i] {
				if r.at != none {
					from = max(from, r.at.from())
				}
			}
		}
	}
	return from
}

// has are the events that a row has: they aren't added to it again.
func (w *snapshots) has(f *snapFile, r snapRow) set {
	at := r.at
	switch {
	case w.variant == lowestForAll:
		return 0
	case at == none && w.variant == absentFromLast:
		at = f.last
	case at != none && w.variant == sweepUnread:
		at = plain(at.from())
	case at != none && w.variant == sweepWhole:
		at = plain(at.end())
	}
	return w.counted(at)
}

func (w *snapshots) folds(s snapState, emit func(snapState, string)) {
	for _, next := range w.following(s.shadow.ledger) {
		t := s
		t.shadow.ledger = next
		events := w.counted(next) &^ w.counted(s.shadow.ledger)
		for i := range snapWindows {
			if s.file.sealed[i] != none && w.variant != sealedFolded {
				continue
			}
			for m := 1; m <= maxHash; m++ {
				adds := w.of(events, i, m) &^ w.has(&s.file, s.file.rows[i][m])
				t.shadow.scores[i] = t.shadow.scores[i].add(adds)
			}
		}
		emit(t, w.say("the log is folded into the shadow, from %v to %v", s.shadow.ledger, next))
	}
}

func (w *snapshots) swaps(s snapState, emit func(snapState, string)) {
	if s.ledger != none && s.ledger != s.shadow.ledger {
		return
	}
	is := w.counted(s.shadow.ledger)
	for i := range s.file.rows {
		if s.file.sealed[i] != none && w.counted(s.file.sealed[i])&^is != 0 {
			return
		}
		for _, r := range s.file.rows[i] {
			if r.at != none && w.counted(r.at)&^is != 0 && w.variant != swapsEarly {
				return
			}
		}
	}
	t := s
	for i := range snapWindows {
		if s.ledger != none && s.sealed[i] != none {
			continue // what is final is kept
		}
		t.scores[i], t.sealed[i] = s.shadow.scores[i], s.file.sealed[i]
	}
	t.ledger, t.torn, t.token = s.shadow.ledger, false, 0
	for i := range snapWindows {
		t.hidden[i] = (t.banned ^ t.moving) & w.present(&t.snapRedis, i)
	}
	t.shadow, t.restorer = snapShadow{ledger: none}, snapRestorer{}
	emit(t, w.say("the shadow is swapped in, at %v", t.ledger))
}
