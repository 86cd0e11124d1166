package rules

import "github.com/standings/standings/internal/codec"

// Standing is what a member has in a window: the tuple, and the ticks of its time, which are
// the greater the earlier (codec.Layout.Ticks).
type Standing struct {
	Tuple codec.Tuple
	Ticks int64
}

// Put is a standing after events that come to a value, with the ticks of the value's time in
// the window (of NoTime those of the window's start). had is the standing before, nil where
// there is none. ok is false where a field would leave its range. It is what layouts.lua does.
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
		// Ticks count down, so they are turned round to be compared as times.
		if r.Merge(Value{packed, -had.Ticks}, Value{value, -ticks}) == (Value{packed, -had.Ticks}) {
			return *had, true
		}
	}
	return now, true
}
