package diff

// How two standings of a member differ.

import (
	"maps"
	"slices"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
)

const (
	onlyA = 1 + iota
	onlyB
	foreign
	otherPoints
	otherTime
)

// kindOf is how two rows differ; 0 where they may be of the same events, and for a member
// that neither side has: it was there when it was read first.
func kindOf(a, b ranking.Row, la, lb codec.TupleLayout, end int64) int {
	switch {
	case !a.There && !b.There:
		return 0
	case !b.There:
		return onlyA
	case !a.There:
		return onlyB
	case a.Foreign || b.Foreign:
		return foreign
	case a.Points != b.Points || a.Tuple != b.Tuple:
		return otherPoints
	case !overlap(a, b, la.Tick, lb.Tick, end):
		return otherTime
	}
	return 0
}

// overlap reports whether two ticks, each given by its first millisecond, share one. Ticks
// are counted from the window's end, of each layout's own length, and the one that holds
// the window's start begins there.
func overlap(a, b ranking.Row, tickA, tickB, end int64) bool {
	last := func(r ranking.Row, tick int64) int64 {
		first := r.ReachedAt.UnixMilli()
		return end - 1 - (end-1-first)/tick*tick
	}
	return a.ReachedAt.UnixMilli() <= last(b, tickB) && b.ReachedAt.UnixMilli() <= last(a, tickA)
}

// report counts what differs in a window, and hands it over by member.
func (d *Prefixes) report(w *Window, differ map[string]ranking.Difference) error {
	for _, member := range slices.Sorted(maps.Keys(differ)) {
		one := differ[member]
		switch kindOf(one.A, one.B, w.a, w.b, w.End) {
		case onlyA:
			w.OnlyA++
		case onlyB:
			w.OnlyB++
		case foreign:
			w.Foreign++
		case otherPoints:
			w.Points++
		default:
			w.Times++
		}
		if d.Each != nil {
			if err := d.Each(one); err != nil {
				return err
			}
		}
	}
	return nil
}
