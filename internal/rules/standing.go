package rules

import "github.com/standings/standings/internal/codec"

// Standing is a member's standing in a window: the tuple, and the ticks of its time. Earlier times have
// more ticks (codec.Layout.Ticks).
type Standing struct {
	Tuple codec.Tuple
	Ticks int64
}

// Put returns the standing after events with the given value, and the ticks of the value's time in the
// window (for NoTime, those of the window's start). had is the standing before, nil if there was none. ok
// is false if a field would leave its range. layouts.lua does the same.
func (r *Rule) Put(had *Standing, value, ticks int64) (now Standing, ok bool) {
	t, ok := r.Values(value)
	if !ok {
		return Standing{}, false
	}
	now = Standing{t, ticks}
	if r.Score == Sum {
		if had != nil {
			now.Ticks = min(ticks, had.Ticks)
			for i := range r.n {
				now.Tuple[i] += had.Tuple[i]
			}
		}
		return now, r.Fields.Holds(now.Tuple)
	}
	if had != nil {
		packed, err := r.packing.Pack(had.Tuple)
		if err != nil {
			return Standing{}, false
		}
		// Ticks decrease with time, so they are negated for the comparison.
		if r.Merge(Value{packed, -had.Ticks}, Value{value, -ticks}) == (Value{packed, -had.Ticks}) {
			return *had, true
		}
	}
	return now, true
}
