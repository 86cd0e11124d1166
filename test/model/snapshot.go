package model

import (
	"fmt"
	"strings"
)

// The protocol of snapshots: one shard's windows are read page by page while they are written, each
// page in one script with the ledger of that instant, and put back later, possibly into another
// Redis, with the log replayed from where the snapshot began.
//
// The consumer is any: whatever the ledger holds, a piece follows that ends anywhere. Who it is, and
// which calls are late, is the first model's.

const snapWindows = 2

// snapEvent is a record: of one member, in some windows.
type snapEvent struct {
	member  int   // its hash, 1 to maxHash
	windows uint8 // bits
}

// snapshots is one setting to search.
type snapshots struct {
	narrator
	events  []snapEvent
	faults  snapFaults
	variant snapRule
}

// snapRule is a rule of the protocol that is broken, empty for none.
type snapRule string

const (
	highestReplayed snapRule = "the log is replayed from the highest position of a page"
	lowestForAll    snapRule = "what lies past the first position is added to every member"
	absentFromLast  snapRule = "a member on no page is counted from the last page's position"
	copiesMixed     snapRule = "of two copies of a member one has the score, and the other the position"
	byRank          snapRule = "pages are stretches of ranks"
	sweepUnread     snapRule = "a page in the middle of a sweep is taken as of the sweep's start"
	sweepWhole      snapRule = "a page in the middle of a sweep is taken as of the sweep's end"
	pageApart       snapRule = "a page's ledger is read in another call than its members"
	listedBefore    snapRule = "windows are listed before the first position is read"
	tokenEarly      snapRule = "the token is set in a call before the first position is read"
	tokenUnchecked  snapRule = "nobody looks whether Redis went back to before the snapshot"
	bansUnwatched   snapRule = "nobody looks whether bans moved members between two sets that are read"
	bansAtEnd       snapRule = "it is only looked once a window is read whether bans have changed"
	bansPassed      snapRule = "a window is begun while a ban moves its members"
	sealUnseen      snapRule = "a window that is sealed between its pages isn't begun anew"
	sealedFolded    snapRule = "a replay adds to a final window"
	tornPaged       snapRule = "a page is read of a torn shard"
	swapsEarly      snapRule = "a restore ends before it is past all pages"
	inPlace         snapRule = "a restore writes into the live boards"
	loadUnfenced    snapRule = "a restore doesn't look whether Redis went back while it loaded"
	loadForgotten   snapRule = "who takes a restore over takes it for loaded"
	shadowOfOther   snapRule = "who takes a restore over doesn't look of which snapshot it is"
)

// snapFaults is how much of each may still happen.
type snapFaults struct{ snapshots, restores, rollback, wipe, death, ban, seal int8 }

// snapRedis is all that goes back in time together.
type snapRedis struct {
	ledger position
	torn   bool // a piece was written in part
	scores [snapWindows]counts
	sealed [snapWindows]position // at which a window became final; none if it isn't

	hidden  [snapWindows]set // members in the hidden set, of those that are in the window
	banned  set              // members whose standings belong there
	moving  set              // of whom some are where they no longer belong
	version int8             // another after each change of these, and never the same again

	token  int8 // of the snapshot that is being read
	shadow snapShadow
}

// snapShadow is a restore's, in Redis.
type snapShadow struct {
	of     int8 // the snapshot's token; 0 for no shadow
	loaded int8 // rows
	ledger position
	scores [snapWindows]counts
}

// snapRow is what a page has of a member in a window.
type snapRow struct {
	at     position // the page's; none: the member is on no page
	events set
}

// snapFile is a whole snapshot, outside Redis.
type snapFile struct {
	token  int8 // 0 for no snapshot
	begin  position
	last   position // of the last page
	sealed [snapWindows]position
	rows   [snapWindows][maxHash + 1]snapRow
}

// snapReader is the process that reads a snapshot.
type snapReader struct {
	snapFile
	listed   uint8 // windows, bits
	early    bool  // of variants: the first position is yet to be read
	window   int8
	begun    bool // the window is
	shown    bool // its sorted set is being read, else its hidden set
	returned set  // members on pages of this set
	steady   set  // members that were in it at every call since it was begun
	version  int8 // of the bans as the window was begun
	rank     int8 // of a variant
	seen     position
}

// snapRestorer is the process that restores.
type snapRestorer struct {
	on   bool
	next int8 // the row to be loaded next
}

type snapState struct {
	snapRedis
	older    snapRedis
	hasOlder bool
	reader   snapReader
	file     snapFile
	restorer snapRestorer
	changes  int8 // of the bans, that ever were
	budget   snapFaults
}

func (w *snapshots) space() space[snapState] {
	begin := snapState{snapRedis: emptySnapRedis(), budget: w.faults}
	begin.ledger = plain(0)
	return space[snapState]{
		begin: begin,
		next: func(s snapState, telling bool, emit func(snapState, string)) {
			w.telling = telling
			w.next(s, emit)
		},
		wrong: w.wrong,
		done:  func(s snapState) bool { return s.ledger == plain(len(w.events)) && !s.torn },
	}
}

func emptySnapRedis() snapRedis {
	r := snapRedis{ledger: none}
	r.sealed = [snapWindows]position{none, none}
	r.shadow.ledger = none
	return r
}

// counted are the events that a position denotes.
func (w *snapshots) counted(p position) (all set) {
	if p == none {
		return 0
	}
	for i, e := range w.events {
		if i < p.from() || i < p.end() && e.member < p.hash() {
			all |= 1 << i
		}
	}
	return all
}

// of are those of some events that are in a window, of one member or, for 0, of all.
func (w *snapshots) of(all set, window, member int) (some set) {
	for i, e := range w.events {
		if all.has(i) && e.windows>>window&1 == 1 && (member == 0 || e.member == member) {
			some |= 1 << i
		}
	}
	return some
}

// present are the members in a window.
func (w *snapshots) present(r *snapRedis, window int) (members set) {
	for i, e := range w.events {
		if r.scores[window]>>(2*i)&3 > 0 {
			members |= 1 << e.member
		}
	}
	return members
}

// in are those in one of its two sets.
func (w *snapshots) in(r *snapRedis, window int, shown bool) set {
	if shown {
		return w.present(r, window) &^ r.hidden[window]
	}
	return w.present(r, window) & r.hidden[window]
}

// denoted is what a window has to have.
func (w *snapshots) denoted(r *snapRedis, window int) counts {
	p := r.ledger
	if r.sealed[window] != none {
		p = r.sealed[window]
	}
	return counts(0).add(w.of(w.counted(p), window, 0))
}

func (w *snapshots) wrong(s snapState) string {
	if s.torn {
		return "" // the scores are anything, and nobody goes on
	}
	for i := range snapWindows {
		if d := w.denoted(&s.snapRedis, i); s.scores[i] != d {
			return fmt.Sprintf("the scores of window %d are %v, and the ledger at %v denotes %v", i, s.scores[i], s.ledger, d)
		}
	}
	return ""
}

// following are the positions that a piece can lead to.
func (w *snapshots) following(p position) (all []position) {
	if !p.isPlain() {
		for h := p.hash() + 1; h <= maxHash; h++ {
			all = append(all, sweeping(p.from(), p.end(), h))
		}
		return append(all, plain(p.end()))
	}
	for end := p.from() + 1; end <= len(w.events); end++ {
		for h := 2; h <= maxHash; h++ {
			all = append(all, sweeping(p.from(), end, h))
		}
		all = append(all, plain(end))
	}
	return all
}

// next emits all that can happen in a state.
func (w *snapshots) next(s snapState, emit func(snapState, string)) {
	w.consumes(s, emit)
	w.bans(s, emit)
	w.misfortunes(s, emit)
	w.reads(s, emit)
	w.restores(s, emit)
}

func (w *snapshots) consumes(s snapState, emit func(snapState, string)) {
	switch {
	case s.torn:
		t := s
		t.torn, t.token = false, 0
		for i := range snapWindows {
			t.scores[i] = w.denoted(&t.snapRedis, i)
			t.hidden[i] = (t.banned ^ t.moving) & w.present(&t.snapRedis, i)
		}
		emit(t, "the torn shard is rebuilt")
		return
	case s.ledger == none:
		t := s
		t.ledger = plain(0)
		emit(t, "a consumer begins the lost Redis from the log's start")
		return
	}
	for _, next := range w.following(s.ledger) {
		events := w.counted(next) &^ w.counted(s.ledger)
		t := s
		t.ledger = next
		for i := range snapWindows {
			w.adds(&t.snapRedis, i, events)
		}
		emit(t, w.say("a piece takes the ledger from %v to %v", s.ledger, next))
		if s.budget.death > 0 && t.scores != s.scores {
			t := s
			t.torn = true
			w.adds(&t.snapRedis, 0, events)
			t.budget.death--
			emit(t, w.say("a piece from %v to %v dies midway", s.ledger, next))
		}
	}
	for i := range snapWindows {
		if s.budget.seal > 0 && s.sealed[i] == none && s.scores[i] != 0 && s.ledger.isPlain() {
			t := s
			t.sealed[i] = s.ledger
			t.budget.seal--
			emit(t, w.say("window %d is sealed at %v", i, s.ledger))
		}
	}
}

// adds adds events to a window. Who is new in it comes where the bans say.
func (w *snapshots) adds(r *snapRedis, window int, events set) {
	if r.sealed[window] != none {
		return
	}
	before := w.present(r, window)
	r.scores[window] = r.scores[window].add(w.of(events, window, 0))
	r.hidden[window] |= (r.banned ^ r.moving) & w.present(r, window) &^ before
}

// bans mark a member, move its standing window by window, and mark it as done.
func (w *snapshots) bans(s snapState, emit func(snapState, string)) {
	for m := 1; m <= maxHash; m++ {
		bit := set(1) << m
		here := w.present(&s.snapRedis, 0)&bit | w.present(&s.snapRedis, 1)&bit
		if s.moving&bit == 0 {
			if s.budget.ban > 0 && here != 0 {
				t := s
				t.moving |= bit
				t.changes++
				t.version = t.changes
				t.budget.ban--
				emit(t, w.say("member %d is about to be hidden, or shown again", m))
			}
			continue
		}
		belongs, left := (s.banned^s.moving)&bit, false
		for i := range snapWindows {
			if w.present(&s.snapRedis, i)&bit != 0 && s.hidden[i]&bit != belongs {
				left = true
				t := s
				t.hidden[i] ^= bit
				emit(t, w.say("member %d is moved to the other set of window %d", m, i))
			}
		}
		if !left {
			t := s
			t.moving &^= bit
			t.banned ^= bit
			t.changes++
			t.version = t.changes
			emit(t, w.say("member %d is moved everywhere", m))
		}
	}
}

// misfortunes are Redis's own.
func (w *snapshots) misfortunes(s snapState, emit func(snapState, string)) {
	if s.budget.rollback > 0 && !s.hasOlder {
		t := s
		t.older, t.hasOlder = s.snapRedis, true
		emit(t, "Redis saves itself")
	}
	if s.hasOlder {
		t := s
		t.snapRedis, t.older, t.hasOlder = s.older, snapRedis{}, false
		t.budget.rollback--
		emit(t, w.say("Redis goes back to %v", t.ledger))
	}
	if s.budget.wipe > 0 {
		t := s
		t.snapRedis = emptySnapRedis()
		t.budget.wipe--
		emit(t, "Redis is wiped")
	}
}

func (r snapRow) String() string {
	if r.at == none {
		return "-"
	}
	return fmt.Sprintf("%v at %v", r.events, r.at)
}

func (f *snapFile) String() string {
	var all []string
	for i := range f.rows {
		for m := 1; m <= maxHash; m++ {
			if f.rows[i][m].at != none {
				all = append(all, fmt.Sprintf("window %d, member %d: %v", i, m, f.rows[i][m]))
			}
		}
	}
	return fmt.Sprintf("begun at %v; %s", f.begin, strings.Join(all, "; "))
}
