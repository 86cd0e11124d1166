package fold

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/standings/standings/internal/periods"
)

// Borders are where windows of calendars start and end, as far as this process knows what was
// settled. Processes may have different time zone data, so an event of a calendar's window is
// folded only once the window's borders are settled: see package ingest, borders.go. It is safe
// for concurrent use. Nil has none, and nothing needs to be settled.
type Borders struct {
	mu      sync.RWMutex
	all     map[periods.Border]int64
	version uint64
}

// mostBorders is how many borders are known at a time. Beyond that, all of them are read again.
const mostBorders = 10_000

// At is a border's instant in Unix ms, if it is settled.
func (b *Borders) At(border periods.Border) (ms int64, ok bool) {
	if b == nil {
		return 0, false
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	ms, ok = b.all[border]
	return ms, ok
}

// Settle learns where borders are.
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

// Forget has all borders be asked for again: what was settled may have been lost with Redis's
// newest seconds, and settled otherwise since.
func (b *Borders) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
	b.version++
}

// now changes whenever something was learned or forgotten.
func (b *Borders) now() uint64 {
	if b == nil {
		return 0
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.version
}

// Unsettled is a border that isn't settled, and where this process's time zone data have it, in Unix ms.
type Unsettled struct {
	Border periods.Border
	At     int64
}

// UnsettledError says that a window's borders have to be settled before an event of it is folded.
type UnsettledError struct{ Borders []Unsettled }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("the border of windows %v isn't settled", e.Borders[0].Border)
}

// By returns the rules with windows that start and end at settled borders.
func (r *Rules) By(settled *Borders) Rules {
	by := *r
	by.borders, by.Periods = settled, slices.Clone(r.Periods)
	for i := range by.Periods {
		by.Periods[i].Rule = by.Periods[i].Rule.By(settled)
	}
	return by
}

// settles notes which borders of a span's windows aren't settled, and until which record time an
// event of theirs may count, wherever they will be.
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
