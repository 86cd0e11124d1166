package model

// Reading a snapshot: a token, the position and the listing in one call; then of each window its
// hidden set and its sorted set, member by member.
//
// A scan promises no more than Redis does: a member that is in the set from the scan's begin to its
// end is returned, once or several times; of others nothing is promised, and order there is none. Redis
// keeps nothing of a scan between two calls, so a member is taken for there that is there at each call.

func noSnapRows() (rows [snapWindows][maxHash + 1]snapRow) {
	for i := range rows {
		for m := range rows[i] {
			rows[i][m].at = none
		}
	}
	return rows
}

func (w *snapshots) reads(s snapState, emit func(snapState, string)) {
	r := &s.reader
	switch {
	case r.token == 0:
		w.begins(s, emit)
		return
	case r.early:
		t := s
		t.reader.early = false
		t.reader.begin, t.reader.last = s.ledger, s.ledger
		if w.variant == tokenEarly {
			t.reader.listed = listedIn(&s.snapRedis)
		}
		emit(t, w.say("the snapshot reads its first position, %v", s.ledger))
		return
	case r.token != s.token && w.variant != tokenUnchecked:
		t := s
		t.reader = snapReader{}
		emit(t, "the snapshot is given up: its token is gone")
		return
	case s.ledger == none || s.torn && w.variant != tornPaged:
		return // it waits
	}
	switch {
	case int(r.window) == snapWindows:
		if !s.restorer.on {
			t := s
			t.file, t.reader = r.snapFile, snapReader{}
			emit(t, w.say("the snapshot is whole: %v", &r.snapFile))
		}
	case r.listed>>r.window&1 == 0:
		t := s
		t.reader.window++
		emit(t, w.say("window %d isn't listed", r.window))
	case !r.begun:
		if s.moving == 0 || w.variant == bansPassed {
			emit(w.beginsWindow(s), w.say("window %d is begun", r.window))
		}
	case s.sealed[r.window] != r.sealed[r.window] && w.variant != sealUnseen:
		emit(w.beginsWindow(s), w.say("window %d is begun anew: it is sealed, or isn't any more", r.window))
	default:
		w.pages(s, emit)
	}
}

func (w *snapshots) begins(s snapState, emit func(snapState, string)) {
	if s.budget.snapshots == 0 || s.torn || s.ledger == none {
		return
	}
	t := s
	t.token = s.budget.snapshots
	t.reader = snapReader{snapFile: snapFile{token: t.token, begin: s.ledger, last: s.ledger, sealed: s.sealed, rows: noSnapRows()}, seen: none}
	t.reader.listed = listedIn(&s.snapRedis)
	t.reader.early = w.variant == listedBefore || w.variant == tokenEarly
	t.budget.snapshots--
	emit(t, w.say("a snapshot is begun at %v, of windows %b", s.ledger, t.reader.listed))
}

func listedIn(r *snapRedis) (windows uint8) {
	for i := range snapWindows {
		if r.scores[i] != 0 {
			windows |= 1 << i
		}
	}
	return windows
}

func (w *snapshots) beginsWindow(s snapState) snapState {
	r := &s.reader
	r.begun, r.shown, r.version, r.sealed[r.window] = true, w.variant == byRank, s.version, s.sealed[r.window]
	r.rows[r.window] = noSnapRows()[0]
	return w.beginsSet(s)
}

func (w *snapshots) beginsSet(s snapState) snapState {
	r := &s.reader
	r.returned, r.rank, r.seen = 0, 0, none
	r.steady = ^set(0)
	return s
}

// pages reads one more member, or ends the set.
func (w *snapshots) pages(s snapState, emit func(snapState, string)) {
	r := &s.reader
	if s.version != r.version && w.variant != bansUnwatched && w.variant != bansAtEnd && w.variant != byRank {
		w.anew(s, emit)
		return
	}
	members := w.in(&s.snapRedis, int(r.window), r.shown)
	r.steady &= members
	if w.variant == pageApart {
		if r.seen == none {
			t := s
			t.reader.seen = s.ledger
			emit(t, w.say("the ledger is read: %v", s.ledger))
			return
		}
	}
	ended := r.steady&^r.returned == 0
	if w.variant == byRank {
		m := w.ranked(s, r.window, int(r.rank))
		if ended = m == 0; !ended {
			t := s
			t.reader.rank++
			w.page(&t, m)
			emit(t, w.say("a page: the member at rank %d of window %d is %d", r.rank, r.window, m))
		}
	} else {
		for m := 1; m <= maxHash; m++ {
			if members.has(m) {
				t := s
				w.page(&t, m)
				emit(t, w.say("a page of window %d: member %d, at %v", r.window, m, s.ledger))
			}
		}
		emit(s, w.say("a page of window %d: nobody, at %v", r.window, s.ledger))
	}
	if !ended {
		return
	}
	t := s
	switch {
	case !r.shown:
		t.reader.shown = true
		emit(w.beginsSet(t), w.say("the hidden set of window %d ends", r.window))
	case s.version != r.version && w.variant == bansAtEnd:
		w.anew(s, emit)
	default:
		t.reader.begun, t.reader.returned, t.reader.steady, t.reader.seen = false, 0, 0, none
		t.reader.window++
		emit(t, w.say("window %d ends", r.window))
	}
}

func (w *snapshots) anew(s snapState, emit func(snapState, string)) {
	s.reader.begun, s.reader.returned, s.reader.steady, s.reader.seen = false, 0, 0, none
	emit(s, w.say("window %d has to be begun anew: bans have changed", s.reader.window))
}

// page takes a member in. What was read of it before is replaced; that it may as well stay is what
// happens where it isn't read again.
func (w *snapshots) page(s *snapState, m int) {
	r := &s.reader
	var has set
	for i, e := range w.events {
		if e.member == m && s.scores[r.window]>>(2*i)&3 > 0 {
			has |= 1 << i
		}
	}
	row := snapRow{at: s.ledger, events: has}
	if r.seen != none {
		row.at = r.seen
	}
	if old := r.rows[r.window][m]; old.at != none && w.variant == copiesMixed {
		row.at = old.at
	}
	r.rows[r.window][m] = row
	r.returned |= 1 << m
	r.last, r.seen = row.at, none
}

// ranked is the member at a rank, of those that are shown: more events first. 0 is none.
func (w *snapshots) ranked(s snapState, window int8, rank int) int {
	members := w.in(&s.snapRedis, int(window), true)
	n := func(m int) (n int) {
		for i, e := range w.events {
			if e.member == m && s.scores[window]>>(2*i)&3 > 0 {
				n++
			}
		}
		return n
	}
	for most := len(w.events); most > 0; most-- {
		for m := maxHash; m > 0; m-- {
			if members.has(m) && n(m) == most {
				if rank == 0 {
					return m
				}
				rank--
			}
		}
	}
	return 0
}
