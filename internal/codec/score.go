// Converts points and ticks to a score, and back, with integers only, so that nothing is rounded.

package codec

import (
	"errors"
	"fmt"
	"math"
)

// ErrScore reports that the layout doesn't write a score: it is of another layout, or another program
// changed it.
var ErrScore = errors.New("not a score of this layout")

// Encode returns the score of points (within ±Max) and ticks (0 to 2^K-1). If they are out of range, the
// error is ErrRange. A score is never NaN, infinite or -0.
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

// Decode returns the points and ticks of a score that Encode returned. For any other score (NaN, ±Inf,
// points past Max, a fraction finer than 2^-K) the error is ErrScore. A readable -0 is accepted as 0: the
// two are equal everywhere, and not every Lua can distinguish them.
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

// readableCode returns points<<k + ticks; ok is false if the score has a finer fraction or is too large.
func readableCode(score float64, k int) (code int64, ok bool) {
	v := score * power(k)
	return int64(v), v >= -widestCode && v <= widestCode && v == math.Floor(v) // NaN isn't equal to itself
}

func wideScore(biased int64, k int, ticks int64) float64 {
	return math.Float64frombits(firstNormal + uint64(biased)<<k + uint64(ticks))
}

// wideCode returns biased points<<k + ticks. For anything but a positive normal double the result is out of
// range: it is negative for subnormals and negative numbers, or larger than any code.
func wideCode(score float64) int64 { return int64(math.Float64bits(score) - firstNormal) }

// widestCode is past every readable score times 2^k; up to it doubles represent all integers.
const widestCode = 1 << readableBits

// power returns 2^n, which must be normal: a multiplication by it changes only the exponent.
func power(n int) float64 { return math.Float64frombits(uint64(1023+n) << 52) }

func (l Layout) rangeError(points, ticks int64) error {
	return fmt.Errorf("encode %d points and %d ticks as %v: %w", points, ticks, l, ErrRange)
}

func (l Layout) scoreError(score float64) error {
	return fmt.Errorf("decode score %v (bits %016x) as %v: %w", score, math.Float64bits(score), l, ErrScore)
}
