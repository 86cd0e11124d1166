package health

import (
	"sync"
	"time"
)

// LagTracker is how far a partition is behind: between where the ledger stands and where
// the log ended when the broker last answered. It is updated a batch and a response at a
// time, never an event.
type LagTracker struct {
	mu        sync.Mutex // guards what is below
	from, end int64      // every event before from counts; -1: not known yet
	since     int64      // ms: the time of the oldest record that doesn't count, 0 without one
	asked     time.Time  // when the end was last seen
	refill    int64      // up to where a lost Redis is read again; 0 where it wasn't lost
}

// Lag is how far a partition is behind.
type Lag struct {
	Known   bool  // false before ledger and log were looked at
	Records int64 // offsets, which transactions and compaction leave gaps in
	// Since is the time of the oldest record that doesn't count, zero without one.
	// Before that record was read it is the time since when there is one.
	Since time.Time
}

// NewLagTracker is of a partition of which nothing is known yet.
func NewLagTracker() *LagTracker { return &LagTracker{from: -1, end: -1} }

// Located is called with where the ledger stands and the log ends.
func (l *LagTracker) Located(from, end int64) {
	l.change(func() {
		if from < l.from {
			l.since = 0 // gone back: older records than we knew of
		}
		l.from, l.end, l.asked = from, end, time.Now()
	})
}

// GoesOn is called with where the ledger stands, once that is settled.
func (l *LagTracker) GoesOn(from int64) { l.change(func() { l.from = from }) }

// Ends is called with where the log ends.
func (l *LagTracker) Ends(end int64) { l.change(func() { l.end, l.asked = end, time.Now() }) }

// Sweeping is called with the time of the oldest record of the batch that is swept
// now, 0 if none has one.
func (l *LagTracker) Sweeping(oldest int64) {
	l.change(func() {
		if oldest > 0 {
			l.since = oldest
		}
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
		l.from, l.since = to, max(newest, 0)
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
		l.since = 0
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
func (l *LagTracker) Lag() Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from < 0 || l.end < 0 {
		return Lag{}
	}
	g := Lag{Known: true, Records: max(0, l.end-l.from)}
	if l.since > 0 {
		g.Since = time.UnixMilli(l.since)
	}
	return g
}
