package fold

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/standings/standings/internal/periods"
)

// Borders holds the settled starts and ends of calendar windows that this process knows. Processes may have
// different time zone data, so a worker folds an event of a calendar window only once the window's borders are
// settled: see borders.go in package ingest. Borders is safe for concurrent use. If it is nil, nothing needs to
// be settled.
type Borders struct {
	mu      sync.RWMutex
	all     map[periods.Border]int64
	version uint64
}

// mostBorders is the maximum number of borders in memory. If there are more, all of them are dropped and read
// again.
const mostBorders = 10_000

// At returns a border's instant in Unix ms, and whether it is settled.
func (b *Borders) At(border periods.Border) (ms int64, ok bool) {
	if b == nil {
		return 0, false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	ms, ok = b.all[border]
	return ms, ok
}

// Settle adds settled borders.
func (b *Borders) Settle(all map[periods.Border]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil || len(b.all)+len(all) > mostBorders {
		b.all = map[periods.Border]int64{}
	}
	for border, ms := range all {
		b.all[border] = ms
	}
	b.version++
}

// Forget drops all borders, so that they are read again: a Redis failover may have lost a settled border, and
// another process may have settled it differently since.
func (b *Borders) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
	b.version++
}

// now returns a version, which changes with every Settle and Forget.
func (b *Borders) now() uint64 {
	if b == nil {
		return 0
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.version
}

// Unsettled is a border that is not settled, and its instant by this process's time zone data, in Unix ms.
type Unsettled struct {
	Border periods.Border
	At     int64
}

// UnsettledError reports that the borders of an event's windows must be settled before the event is folded.
type UnsettledError struct{ Borders []Unsettled }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("the border of windows %v isn't settled", e.Borders[0].Border)
}

// By returns a copy of the rules whose windows start and end at settled borders.
func (r *Rules) By(settled *Borders) Rules {
	by := *r
	by.borders, by.Periods = settled, slices.Clone(r.Periods)
	for i := range by.Periods {
		by.Periods[i].Rule = by.Periods[i].Rule.By(settled)
	}
	return by
}

// settles records which borders of a span's windows are not settled, and the latest record time at which an
// event may still count in such a window, wherever its border will be.
func (r *Rules) settles(s *span) {
	s.near = never
	if r.borders == nil {
		return
	}
	for i := range s.Windows {
		w := &s.Windows[i]
		start, end, ok := r.Periods[i].Rule.Borders(w.Name)
		if !ok {
			continue
		}
		open := false
		for _, u := range []Unsettled{{start, w.Start}, {end, w.End}} {
			if _, known := r.borders.At(u.Border); known {
				continue
			}
			open = true
			if !slices.Contains(s.unsettled, u) {
				s.unsettled = append(s.unsettled, u)
			}
		}
		if open {
			s.near = max(s.near, min(s.until[i], math.MaxInt64-periods.MaxShift)+periods.MaxShift)
		}
	}
}
