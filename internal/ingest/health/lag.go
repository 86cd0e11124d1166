package health

import (
	"sync"
	"time"

	"github.com/standings/standings/internal/ledger/workers"
)

// LagTracker measures how far a partition is behind: from the ledger's position to the log's end in the last
// answer of a broker. It is updated for each batch and response, not for each event.
//
//	every event counts ──▶ from ...... stable: the first open transaction ...... high: the log's end
type LagTracker struct {
	mu        sync.Mutex // guards the fields below
	from, end int64      // every event before from counts; end is the stable offset; -1: not known yet
	high      int64      // the log's end; equals end if no transaction is open
	open      time.Time  // when the transaction at end was first seen; zero if none is open
	since     int64      // time of the oldest uncounted record, in ms; 0 if there is none
	unread    bool       // no uncounted record has been read yet: they may be older than since
	asked     time.Time  // when the end was last seen
	refill    int64      // up to which offset a lost Redis is read again; 0 if it was not lost
}

// NewLagTracker returns a LagTracker for a partition of which nothing is known yet.
func NewLagTracker() *LagTracker { return &LagTracker{from: -1, end: -1, high: -1} }

// Located records the ledger's position and the log's end.
func (l *LagTracker) Located(from, end int64) {
	l.change(func() {
		if from < l.from {
			l.since = 0 // the position went back: older records than the known ones
		}
		if end != l.end {
			l.open = time.Time{}
		}
		l.from, l.end, l.high, l.asked, l.unread = from, end, max(l.high, end), time.Now(), true
	})
}

// GoesOn records the ledger's position, once it is settled.
func (l *LagTracker) GoesOn(from int64) { l.change(func() { l.from = from }) }

// Ends records the log's end: stable is the end for readers of committed records, before the first open
// transaction; high is the end after the last record, -1 if unknown.
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

// Sweeping records the time of the oldest record in the batch that is being swept, 0 if none has a time.
func (l *LagTracker) Sweeping(oldest int64) {
	l.change(func() {
		if oldest > 0 {
			l.since = oldest
		}
		l.unread = false
	})
}

// Counts records that a batch is done, with its end and the time of its newest record. Later records are rarely
// older. It reports whether this batch completes the refill of a lost Redis.
func (l *LagTracker) Counts(to, newest int64) (refilled bool) {
	l.change(func() {
		if refilled = l.refill > 0 && to >= l.refill; refilled {
			l.refill = 0
		}
		l.from, l.since, l.unread = to, max(newest, 0), false
	})
	return refilled
}

// Refills sets the offset up to which a lost Redis is read again.
func (l *LagTracker) Refills(to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refill = to
}

// Refilling returns how many records must still be read again since Redis was lost.
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

// Stale reports whether the end was last seen longer ago than after.
func (l *LagTracker) Stale(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.asked) > after
}

// Lag returns the partition's current lag.
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
