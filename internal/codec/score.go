// Points and ticks to a score, and back: integers throughout, so that nothing is
// ever rounded.

package codec

import (
	"errors"
	"fmt"
	"math"
)

// ErrScore says that a score is none that the layout writes: another layout's, or
// changed by someone else.
var ErrScore = errors.New("not a score of this layout")

// Encode is the score of points (within ±Max) and ticks (0 to 2^K-1), both
// inclusive. Anything else is ErrRange. A score is never NaN, infinite or -0.
func (l Layout) Encode(points, ticks int64) (float64, error) {
	if points < -l.Max || points > l.Max || ticks < 0 || ticks >= 1<<l.K {
		return 0, l.rangeError(points, ticks)
	}
	switch l.Kind {
	case Readable:
		return readableScore(points, l.K, ticks), nil
	case Wide:
		return wideScore(points+l.Max, l.K, ticks), nil
	}
	return 0, l.rangeError(points, ticks)
}

// Decode returns the points and ticks that Encode made score of. What Encode
// never writes is ErrScore: NaN, ±Inf, points past Max, a fraction finer than
// 2^-K. A readable -0 is the score 0, which it equals everywhere: not every Lua
// can tell them apart.
func (l Layout) Decode(score float64) (points, ticks int64, err error) {
	var code int64
	switch l.Kind {
	case Readable:
		var ok bool
		if code, ok = readableCode(score, l.K); !ok {
			return 0, 0, l.scoreError(score)
		}
		points = code >> l.K // rounds down, also below zero
	case Wide:
		code = wideCode(score)
		points = code>>l.K - l.Max
	default:
		return 0, 0, l.scoreError(score)
	}
	if points < -l.Max || points > l.Max {
		return 0, 0, l.scoreError(score)
	}
	return points, code & (1<<l.K - 1), nil
}

func readableScore(points int64, k int, ticks int64) float64 {
	return float64(points<<k+ticks) * power(-k)
}

// readableCode is points and ticks side by side; ok is false where there are more digits than
// a score has.
func readableCode(score float64, k int) (code int64, ok bool) {
	v := score * power(k)
	return int64(v), v >= -widestCode && v <= widestCode && v == math.Floor(v) // NaN isn't even itself
}

func wideScore(biased int64, k int, ticks int64) float64 {
	return math.Float64frombits(firstNormal + uint64(biased)<<k + uint64(ticks))
}

// wideCode is biased points and ticks side by side. What isn't a positive normal double comes
// out above or below the range: subnormals and numbers with a sign are negative here, or past
// all codes.
func wideCode(score float64) int64 { return int64(math.Float64bits(score) - firstNormal) }

// widestCode is past every readable score, scaled: up to it doubles are exact.
const widestCode = 1 << readableBits

// power is 2^n for a normal result: multiplying by it moves the exponent alone.
func power(n int) float64 { return math.Float64frombits(uint64(1023+n) << 52) }

func (l Layout) rangeError(points, ticks int64) error {
	return fmt.Errorf("encode %d points and %d ticks as %v: %w", points, ticks, l, ErrRange)
}

func (l Layout) scoreError(score float64) error {
	return fmt.Errorf("decode score %v (bits %016x) as %v: %w", score, math.Float64bits(score), l, ErrScore)
}
