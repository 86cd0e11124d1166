package simulate

// Snapshots that are taken while everything else happens: by the product's own reader, in small pages,
// whose every call is one of the driver's (snapshottaking.go). What was read stays in memory, and once a
// snapshot is whole it is judged (snapshotted.go).

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking"
)

const (
	snaps     = "a snapshot is taken"
	lulls     = "a snapshot pauses"
	restarts  = "another process of Redis takes over"
	backAfter = "Redis goes back to the middle of a snapshot"

	snapWhole     = "a snapshot is whole, of a shard"
	snapBack      = "a snapshot ends, as Redis went back to before it"
	snapBackAfter = "Redis goes back in the middle of a snapshot that goes on"
	snapSwapped   = "a snapshot ends, as boards were swapped between two pages"
	snapRebuilt   = "a snapshot ends, as a rebuild is under way"
	snapLeft      = "a snapshot ends, as its lease is over"
	snapBusy      = "a snapshot isn't begun, as another is under way"
	snapTorn      = "a snapshot ends at a torn ledger"
	snapMissing   = "a snapshot ends, as a key is lost"
	snapBans      = "a window is begun anew, as bans have changed"
	snapMoving    = "a window isn't begun while a ban moves its members"
	snapSealed    = "a window is begun anew, as it was sealed"
	snapReopened  = "a window is begun anew, as it was reopened"
	snapProcess   = "a window is begun anew, as another process has taken over"
	snapGone      = "a window is left out, as it was dropped or its life is over"
	snapOpened    = "a window is opened in the middle of a snapshot"
	snapLate      = "events come for a window that was sealed as it is read"
	snapFinal     = "a final window is in a snapshot"
	snapHidden    = "hidden members are in a snapshot"
	snapAgain     = "a member is on several pages of a window"
	snapSweep     = "a page is of the middle of a sweep"
	snapMoved     = "pages of a window are of different positions"
	snapAdded     = "a partition is added in the middle of a snapshot"
)

// What happens in the world of seed snapsFrom+n is what happens in that of n, as far as it can.
const snapsFrom = int64(1) << 44

const snapLease = 10 * time.Second

// snapToken is the key of whose snapshot is being read.
const snapToken = "~snapshot"

// snaps has snapshots be taken, and what they are about happen meanwhile.
func (p *plan) snaps(n int64) {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x5a9))}
	s := &p.setup
	s.MaxPoints = 99_999_999 // whom Redis refuses is another world's
	s.PageMembers, s.PagePause = d.pick(2, 3, 3, 5, 8), time.Duration(d.pick(0, 50, 50, 100, 150))*time.Millisecond
	// What it is in the midst of already leaves it somewhat more often as it is.
	p.events = slices.DeleteFunc(p.events, func(f fault) bool {
		return f.kind != publish && f.kind != endOpen && f.kind != topicMade && d.IntN(10) > 0
	})
	switch {
	case n%3 == 0:
		p.seals()
		p.events = slices.DeleteFunc(p.events, func(f fault) bool { return f.kind == closes })
		if d.IntN(4) > 0 {
			clear(s.Apart)
		}
	case n%3 == 1 && !s.Bans:
		p.banned(d)
	}
	for n := range d.pick(1, 1, 2) {
		p.events = append(p.events, fault{at: 5 + n*120 + d.IntN(40), kind: snaps, n: d.IntN(1 << 16)})
	}
	for range 3 { // that are begun
		p.read = append(p.read, d.whileRead(p))
	}
	if !s.Seal && s.Shards < 2 && d.IntN(3) == 0 { // boards were dropped, and a swap brings them back
		at := 20 + d.IntN(40)
		p.events = append(p.events, fault{at: at, kind: drops, n: d.IntN(1 << 16)}, fault{at: at + 15, kind: snaps, n: d.IntN(1 << 16)})
		for i := range p.read {
			p.read[i] = append(p.read[i], fault{at: 2, kind: lulls, n: 6}, fault{at: 4 + d.IntN(6), kind: rebuilds, n: d.IntN(1 << 16)})
		}
	}
	for range d.pick(0, 0, 0, 1, 2) {
		f := fault{at: d.IntN(100), on: snaps, n: d.IntN(1 << 16)}
		f.kind = pick(d, cutBefore, lostAnswer, silence, lateDone, lateDone, slow, slow, slow, refused, dies, crash)
		p.events = append(p.events, f)
	}
}

// whileRead draws what happens while a snapshot is read.
func (d *drawer) whileRead(p *plan) (all []fault) {
	s, most := &p.setup, d.pick(20, 40, 80)
	more := 3 + d.IntN(4)
	if s.Seal { // of too many events nobody finds out which were taken for late
		more = 1
	}
	for range more { // for whom there is already, and for others
		p.sendings = append(p.sendings, p.sendings[d.IntN(len(p.sendings))])
		all = append(all, fault{at: d.IntN(most), kind: publish, n: len(p.sendings) - 1})
	}
	if d.IntN(12) == 0 {
		all = append(all, fault{at: d.IntN(most), kind: dies, on: "apply", n: 3 + d.IntN(6)})
	}
	for range d.pick(1, 1, 2, 3) {
		f := fault{at: d.IntN(most), n: d.IntN(1 << 16)}
		f.kind = pick(d, rollback, backAfter, backAfter, backAfter, restarts, restarts, restarts, lulls, lulls, wipe, grow, grow, start, evict, flush, drops)
		switch {
		case s.Bans && d.IntN(3) > 0:
			f.kind = pick(d, bansMember, bansMember, unbans, erases)
			for range 3 { // so that pages are read while it moves them
				all = append(all, fault{at: f.at, kind: slow, on: "ban", n: 11 - d.IntN(4)})
			}
		case s.Seal && d.IntN(3) > 0:
			f.kind = pick(d, closes, closes, reopens)
			f.n *= 3 // now
		case (f.kind == drops || f.kind == evict) && (s.Seal || s.Shards > 1): // what becomes of final windows then others tell
			f.kind = restarts
		}
		if all = append(all, f); f.kind == lulls && s.Shards < 2 && d.IntN(2) == 0 { // during which boards are swapped
			all = append(all, fault{at: f.at + 1 + d.IntN(3), kind: rebuilds, n: d.IntN(1 << 16)})
		}
	}
	return all
}

// nears has all clocks move on until shortly before a listed window takes nothing any more, the next one.
func (w *world) nears() {
	const shortly = 2 * time.Second
	next := beginning.Add(20 * day).UnixMilli()
	for _, sh := range w.shards {
		for name, text := range sh.hash(windowsKey) {
			if at, ok := closesAt(name, text); ok && at >= w.reached() {
				next = min(next, at)
			}
		}
	}
	w.movesOn(time.UnixMilli(next).Add(-shortly))
}

// takesSnapshot has somebody take a snapshot, and again if it fails.
func (w *world) takesSnapshot(n int) {
	if w.setup.Seal {
		w.nears()
	}
	const tries = 4
	w.errandOf(snaps, func(p *process) (done int64, err error) {
		for try := range tries {
			if err = p.snapshots(); err == nil || p.Err() != nil {
				break
			}
			w.tellf("process %d has no snapshot: %v", p.id, err)
			p.snap.fails(w, err)
			if errors.Is(err, ranking.ErrUnsettled) {
				break
			}
			p.rests(time.Duration(1+(n+try)%4) * 700 * time.Millisecond)
		}
		return int64(len(p.snap.whole)), err
	})
}

func (p *process) rests(d time.Duration) {
	select {
	case <-time.After(d + time.Duration(p.id)*1_299_709):
	case <-p.Done():
	}
}

// snapshotsUnderWay calls back with who takes a snapshot of something on a master.
func (m *master) snapshotsUnderWay(do func(*snapping)) {
	for _, r := range m.w.rebuilds {
		if r.errand == snaps && !r.told && !r.dead {
			do(r.snap)
		}
	}
}

// isRead reports whether a snapshot is under way.
func (w *world) isRead() bool {
	return slices.ContainsFunc(w.rebuilds, func(r *rebuilding) bool { return r.errand == snaps && !r.told && !r.dead })
}

// comesLate has events come for a window that is final now, if somebody is in the midst of reading it.
func (w *world) comesLate(name string) {
	if w.ending || w.counts[snapLate] > 0 {
		return
	}
	for _, r := range w.rebuilds {
		if r.errand == snaps && !r.told && !r.dead && r.snap.reading == name {
			w.count(snapLate)
			w.events = append(w.events, fault{at: w.step + 1, kind: publish, n: r.id % w.plan.first}, fault{at: w.step + 2, kind: publish, n: (r.id + 1) % w.plan.first})
			return
		}
	}
}

// pauses has who takes a snapshot wait for a while after its next page: at times for longer than its lease.
func (w *world) pauses(n int) (some bool) {
	for _, r := range w.rebuilds {
		if r.errand == snaps && !r.told && !r.dead {
			lull := time.Duration(2+n%8) * time.Second
			if n%7 == 0 {
				lull = snapLease + time.Second
			}
			r.snap.lull.Store(int64(lull))
			some = true
		}
	}
	return some
}

// staysOpen leaves connections open, mostly: who reads a snapshot has none of it if one ends.
func staysOpen(n int) int {
	if n>>4%4 == 0 {
		return 0
	}
	return 1 << 8
}

// restarts has another process take over from a master's, with all that was there.
func (w *world) restarts(n int) {
	m := w.struck(n)[0]
	w.tellf("another process takes over from %s", m.named())
	m.reconnects(n | staysOpen(n) | 1<<9)
}

// goesBackAfter has masters go back to a moment in the middle of a snapshot.
func (w *world) goesBackAfter(n int) (went bool) {
	for _, m := range w.struck(n) {
		var some []history
		for _, h := range m.histories {
			for _, sh := range m.shards {
				if h.redis.Has(sh.key(snapToken)) {
					some = append(some, h)
					break
				}
			}
		}
		if len(some) > 0 && !m.damaged {
			went = m.goesBackTo(some[n>>3%len(some)], n|staysOpen(n)) || went
		}
	}
	return went
}

// returnsTaken judges what was read.
func (w *world) returnsTaken(r *rebuilding) {
	for _, t := range r.snap.whole {
		w.count(snapWhole)
		t.judge()
	}
	if w.setup.Restores && r.err == nil && !w.back.lost {
		all := r.snap.whole[len(r.snap.whole)-len(w.shards):] // what an earlier try has left isn't of this one
		w.back.file = &snapFile{nameOfSnapshot(all), all}
	}
	w.tellf("process %d has read snapshots of %d shards: %v", r.id, len(r.snap.whole), r.err)
}
