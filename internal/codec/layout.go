// Package codec converts a member's points, and the time at which they were reached, to the float64 that
// Redis sorts by, and back. If a board has several fields in place of points, their tuple is first packed
// into an integer (Packing). The package is pure.
//
// Encode is strictly increasing in points, then in ticks, and Decode returns both exactly. So a sorted set
// has the order "most points, earliest first", and needs no data but the scores. A layout refuses values
// that it has no room for; it never rounds or clamps.
//
//	readable   score = points + ticks/2^k
//	           ┌─ points ─┬─ ticks ─┐  53 bits, what a double holds exactly
//	wide       bits  = 2^52 + (points+max)·2^k + ticks
//	           0┌─ points+max ─┬─ ticks ─┐  the bits of a positive normal double
//
// The Lua script that writes the scores implements the same arithmetic; testdata/golden.json checks that
// both agree.
package codec

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Kind is the name of a kind of layout.
type Kind string

const (
	// Readable scores are points + ticks/2^k: any Redis client can read the points as floor(score).
	Readable Kind = "readable"
	// Wide scores have finer ticks or larger ranges (63 bits instead of 53), but aren't readable.
	Wide Kind = "wide"
)

// Layout is how scores hold a period's points and time. Only New creates a consistent Layout; the zero
// Layout has no scores.
type Layout struct {
	Kind Kind
	K    int   // bits of ticks, 1 to 44
	Tick int64 // duration of a tick in ms; at least 1
	Max  int64 // points are within ±Max
}

// ErrRange reports that a value is out of the range of a layout.
var ErrRange = errors.New("out of range")

const (
	// readableBits is the number of bits of a double's significand.
	readableBits = 53
	// firstNormal is the smallest positive normal double, as bits. Below it are zero and the subnormals,
	// which some platforms flush to zero.
	firstNormal = 1 << 52
	// wideCodes is the number of positive normal doubles.
	wideCodes = 1<<63 - 1<<53
	// widest is the largest range: it leaves readable one bit of ticks, and keeps wide's points+max below
	// 2^53, where Lua's numbers are exact.
	widest = 1<<52 - 1
	// widestUnsigned is the largest range of wide without negative values, for the same reason.
	widestUnsigned = 1<<53 - 1
	// coarse is the tick, in ms, above which a configuration gets a warning.
	coarse = 1000
)

// New returns the layout for windows of at most length, with points within ±limit (1 to 2^52-1). It uses as
// many bits of ticks as the range leaves, but no more than a tick of 1 ms needs. If the range doesn't fit,
// the error is ErrRange and says what would fit.
func New(kind Kind, length time.Duration, limit int64) (Layout, error) {
	ms, err := checked(kind, length)
	if err != nil {
		return Layout{}, err
	}
	if limit < 1 || limit > widest {
		return Layout{}, fmt.Errorf(
			"layout %s: points within ±%d: %w: ±1 to ±%d fits, and up to ±%d keeps the tick of a %v window within a second",
			kind, limit, ErrRange, int64(widest), largest(kind, bitsFor(ceilDiv(ms, coarse))), length)
	}
	k := min(room(kind, limit, -limit), bitsFor(ms))
	return Layout{Kind: kind, K: k, Tick: ceilDiv(ms, 1<<k), Max: limit}, nil
}

// checked returns the length in ms, rounded up, or an error if no layout of the kind has it.
func checked(kind Kind, length time.Duration) (ms int64, err error) {
	if kind != Readable && kind != Wide {
		return 0, fmt.Errorf("layout %q: must be %q or %q", kind, Readable, Wide)
	}
	if length <= 0 {
		return 0, fmt.Errorf("layout %s: windows of %v: %w: at least 1ms fits", kind, length, ErrRange)
	}
	return ceilDiv(int64(length), int64(time.Millisecond)), nil
}

// Coarse reports whether the tick is longer than a second, so that users could notice a wrong order of
// equal points.
func (l Layout) Coarse() bool { return l.Tick > coarse }

// String describes the layout: readable: k 26, tick 10ms, points within ±99999999.
func (l Layout) String() string {
	return fmt.Sprintf("%s: k %d, tick %v, points within ±%d",
		l.Kind, l.K, time.Duration(l.Tick)*time.Millisecond, l.Max)
}

// room returns the number of bits that the range from low to limit leaves for ticks. low is 0 or -limit.
func room(kind Kind, limit, low int64) int {
	if kind == Readable {
		return readableBits - bits.Len64(uint64(limit))
	}
	return bits.Len64(wideCodes/uint64(limit-low+1)) - 1
}

// largest returns the largest range that leaves k bits for ticks.
func largest(kind Kind, k int) int64 {
	if kind == Readable {
		return 1<<(readableBits-k) - 1
	}
	return min(int64(widest), (int64(wideCodes)>>k-1)/2)
}

// bitsFor returns the number of bits for n ticks; at least 1.
func bitsFor(n int64) int { return max(1, bits.Len64(uint64(n-1))) }

func ceilDiv(n, d int64) int64 {
	q := n / d
	if n%d > 0 {
		q++
	}
	return q
}
