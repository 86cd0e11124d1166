// Package codec turns a member's points and the time they were reached into the
// one float64 that Redis sorts by, and back. Where a board has several fields in place of
// points, their tuple is packed into one whole number first (Packing). It is pure.
//
// The promise: Encode is strictly increasing in points, then in ticks, and Decode
// returns both exactly. So a sorted set's order is "most points, earliest first",
// and nothing but the score is stored. What a layout has no room for is refused,
// never rounded or clamped.
//
//	readable   score = points + ticks/2^k
//	           ┌─ points ─┬─ ticks ─┐  53 bits, what a double holds exactly
//	wide       bits  = 2^52 + (points+max)·2^k + ticks
//	           0┌─ points+max ─┬─ ticks ─┐  the bits of a positive normal double
//
// The same arithmetic stands in Lua in the script that writes the scores;
// testdata/golden.json holds the two together.
package codec

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Kind is the name of a way to lay out a score.
type Kind string

const (
	// Readable scores are points + ticks/2^k: any Redis client sees the points as
	// floor(score).
	Readable Kind = "readable"
	// Wide scores have finer ticks or larger ranges (63 bits in place of 53), and
	// say nothing to the eye.
	Wide Kind = "wide"
)

// Layout is how a period's points and time are laid out in a score. Only New
// makes one whose numbers fit each other; the zero Layout has no scores.
type Layout struct {
	Kind Kind
	K    int   // bits of ticks, 1 to 44
	Tick int64 // the time step that scores tell apart, in ms; at least 1
	Max  int64 // points lie within ±Max
}

// ErrRange says that something lies outside of what a layout can hold.
var ErrRange = errors.New("out of range")

const (
	// readableBits is the length of a double's significand.
	readableBits = 53
	// firstNormal is the bits of the smallest positive normal double. Below it
	// lie zero and the subnormals, which some platforms flush to zero.
	firstNormal = 1 << 52
	// wideCodes is the number of positive normal doubles.
	wideCodes = 1<<63 - 1<<53
	// widest is the largest range: it leaves readable one bit of ticks, and keeps
	// wide's points+max below 2^53, where Lua's numbers are exact.
	widest = 1<<52 - 1
	// widestUnsigned is the largest range of wide from 0 on, for the same reason.
	widestUnsigned = 1<<53 - 1
	// coarse is the tick, in ms, above which a configuration gets a warning.
	coarse = 1000
)

// New works out the layout for windows of at most length, with points within
// ±limit (1 to 2^52-1): as many bits of ticks as the range leaves, though no more
// than a tick of 1 ms can use. What can't fit is ErrRange, and the error says
// what would.
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

// checked is the length in ms, rounded up, if there are layouts of the kind for it.
func checked(kind Kind, length time.Duration) (ms int64, err error) {
	if kind != Readable && kind != Wide {
		return 0, fmt.Errorf("layout %q: must be %q or %q", kind, Readable, Wide)
	}
	if length <= 0 {
		return 0, fmt.Errorf("layout %s: windows of %v: %w: at least 1ms fits", kind, length, ErrRange)
	}
	return ceilDiv(int64(length), int64(time.Millisecond)), nil
}

// Coarse reports whether the tick is above a second, so that people would notice
// who is ranked first among equals.
func (l Layout) Coarse() bool { return l.Tick > coarse }

// String says all that a configuration came to: readable: k 26, tick 10ms, points
// within ±99999999.
func (l Layout) String() string {
	return fmt.Sprintf("%s: k %d, tick %v, points within ±%d",
		l.Kind, l.K, time.Duration(l.Tick)*time.Millisecond, l.Max)
}

// room is how many bits of ticks a range of low to limit leaves; low is 0 or -limit.
func room(kind Kind, limit, low int64) int {
	if kind == Readable {
		return readableBits - bits.Len64(uint64(limit))
	}
	return bits.Len64(wideCodes/uint64(limit-low+1)) - 1
}

// largest is the largest range that leaves k bits of ticks.
func largest(kind Kind, k int) int64 {
	if kind == Readable {
		return 1<<(readableBits-k) - 1
	}
	return min(int64(widest), (int64(wideCodes)>>k-1)/2)
}

// bitsFor is how many bits tell n ticks apart; at least one.
func bitsFor(n int64) int { return max(1, bits.Len64(uint64(n-1))) }

func ceilDiv(n, d int64) int64 {
	q := n / d
	if n%d > 0 {
		q++
	}
	return q
}
