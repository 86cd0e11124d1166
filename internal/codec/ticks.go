// A time in a window to ticks, and back. Ticks count from the window's end, so
// that of equal points the earlier has the larger score.

package codec

// Ticks is how many whole ticks lie between at and the last millisecond of the
// window [start, end), all in Unix milliseconds: floor((end-1-at) / Tick). A time
// before start counts as start.
//
// The result is in [0, 2^K) for every window that is no longer than the layout
// was made for. A time at or past end has no ticks: the result is -1, which
// Encode refuses.
func (l Layout) Ticks(start, end, at int64) int64 {
	at = max(at, start)
	if at >= end {
		return -1
	}
	// Unsigned, so that not even a window wider than an int64 wraps into range.
	return int64(uint64(end-1-at) / uint64(l.Tick))
}

// Time is the first millisecond of a tick of the window [start, end), but not
// before start: what a standing shows as reached_at. It is at most Tick-1 ms
// before each time that has these ticks. Ticks are those that Decode returns.
func (l Layout) Time(start, end, ticks int64) int64 {
	return max(start, end-(ticks+1)*l.Tick)
}
