// Converts a time in a window to ticks, and back. Ticks are counted back from the window's end, so that of
// equal points the earlier have the larger score.

package codec

// Ticks returns how many whole ticks are between at and the last millisecond of the window [start, end),
// all in Unix ms: floor((end-1-at) / Tick). A time before start counts as start.
//
// The result is in [0, 2^K) for every window that isn't longer than the length that the layout was made
// for. For a time at or past end the result is -1, which Encode refuses.
func (l Layout) Ticks(start, end, at int64) int64 {
	at = max(at, start)
	if at >= end {
		return -1
	}
	// Unsigned, so that not even a window longer than an int64 can overflow into the range.
	return int64(uint64(end-1-at) / uint64(l.Tick))
}

// Time returns the first millisecond of a tick of the window [start, end), but not before start: a
// standing's reached_at. It is at most Tick-1 ms before each time with these ticks. ticks must be a result
// of Decode.
func (l Layout) Time(start, end, ticks int64) int64 {
	return max(start, end-(ticks+1)*l.Tick)
}
