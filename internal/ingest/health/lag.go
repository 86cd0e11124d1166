package health

import (
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger/workers"
)

// LagTracker is how far a partition is behind: between where the ledger stands and where
// the log ended when the broker last answered. It is updated a batch and a response at a
// time, never an event.
//
//	every event counts ──▶ from ...... stable: the first open transaction ...... high: the log's end
type LagTracker struct {
	mu        sync.Mutex // guards what is below
	from, end int64      // every event before from counts; end is stable. -1: not known yet
	high      int64      // the log's end; end if no transaction is open
	open      time.Time  // since when the transaction at end has been seen; zero if none is open
	since     int64      // ms: the time of the oldest record that doesn't count, 0 without one
	unread    bool       // none of the records that don't count was read yet: they may be older than since
	asked     time.Time  // when the end was last seen
	refill    int64      // up to where a lost Redis is read again; 0 where it wasn't lost
}

// NewLagTracker is of a partition of which nothing is known yet.
func NewLagTracker() *LagTracker { return &LagTracker{from: -1, end: -1, high: -1} }

// Located is called with where the ledger stands and the log ends.
func (l *LagTracker) Located(from, end int64) {
	l.change(func() {
		if from < l.from {
			l.since = 0 // gone back: older records than we knew of
		}
		if end != l.end {
			l.open = time.Time{}
		}
		l.from, l.end, l.high, l.asked, l.unread = from, end, max(l.high, end), time.Now(), true
	})
}

// GoesOn is called with where the ledger stands, once that is settled.
func (l *LagTracker) GoesOn(from int64) { l.change(func() { l.from = from }) }

// Ends is called with where the log ends: for readers of what is committed, before the first open transaction; and
// after its last record, -1 if that was not looked at.
func (l *LagTracker) Ends(stable, high int64) {
	l.change(func() {
		if stable != l.end || high >= 0 && high <= stable {
			l.open = time.Time{}
		}
		l.end, l.asked, l.high = stable, time.Now(), max(l.high, stable, high)
		if high >= 0 {
			l.high = max(high, stable)
		}
		if l.high > stable && l.open.IsZero() && high >= 0 {
			l.open = time.Now().UTC()
		}
	})
}

// Sweeping is called with the time of the oldest record of the batch that is swept
// now, 0 if none has one.
func (l *LagTracker) Sweeping(oldest int64) {
	l.change(func() {
		if oldest > 0 {
			l.since = oldest
		}
		l.unread = false
	})
}

// Counts is called where a batch is through, with its end and the time of its newest
// record. What follows it is hardly older. It reports whether a lost Redis has been read again
// with that batch.
func (l *LagTracker) Counts(to, newest int64) (refilled bool) {
	l.change(func() {
		if refilled = l.refill > 0 && to >= l.refill; refilled {
			l.refill = 0
		}
		l.from, l.since, l.unread = to, max(newest, 0), false
	})
	return refilled
}

// Refills is called with the offset up to which a lost Redis is read again.
func (l *LagTracker) Refills(to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill = to
}

// Refilling is how many records are still to be read again since Redis was lost.
func (l *LagTracker) Refilling() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refill == 0 || l.from < 0 {
		return 0
	}
	return max(0, l.refill-l.from)
}

func (l *LagTracker) change(to func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to()
	switch {
	case l.from >= l.end || l.from < 0:
		l.since, l.unread = 0, false
	case l.since == 0:
		l.since = time.Now().UnixMilli()
	}
}

// Stale reports whether the end was last seen longer ago than that.
func (l *LagTracker) Stale(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.asked) > after
}

// Lag is how far the partition is behind now.
func (l *LagTracker) Lag() workers.Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from < 0 || l.end < 0 {
		return workers.Lag{}
	}
	g := workers.Lag{Known: true, Records: max(0, l.high-l.from), Unread: l.unread && l.high > l.from}
	if l.since > 0 {
		g.Since = time.UnixMilli(l.since)
	}
	if !l.open.IsZero() {
		g.Open = &workers.OpenTransaction{Offset: l.end, Since: l.open}
		if g.Since.IsZero() {
			g.Since = l.open
		}
	}
	return g
}
