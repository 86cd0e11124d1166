// Bounds contain the scores of a tuple with all of its ticks, and of no other tuple.

package codec

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustBounds(t rapid.TB, l TupleLayout, values Tuple) (low, high float64) {
	t.Helper()
	low, high, err := l.Bounds(values)
	require.NoError(t, err)
	return low, high
}

func TestTheBoundsOfATupleHaveAllItsScoresAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		l := mustTupleLayout(t, kind, time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length")), f)
		values := drawTuple(t, f, "value")
		low, high := mustBounds(t, l, values)
		scoreOf := func(values Tuple, ticks int64) float64 {
			score, err := l.Encode(values, ticks)
			require.NoError(t, err)
			return score
		}
		for _, ticks := range []int64{0, 1<<l.K - 1, drawTicks(t, l.layout())} {
			if score := scoreOf(values, ticks); score < low || score >= high {
				t.Fatalf("%v: %v with %d ticks is %v, not in [%v, %v)", l, values, ticks, score, low, high)
			}
		}
		if low != scoreOf(values, 0) {
			t.Fatalf("%v: %v begins at %v, and the least of its scores is %v", l, values, low, scoreOf(values, 0))
		}
		// There is no gap: the next packed number begins where this one ends.
		packed := mustPack(t, l.Packing, values)
		if next, err := l.Packing.Unpack(packed + 1); err == nil {
			if begins, _ := mustBounds(t, l, next); begins != high {
				t.Fatalf("%v: %v ends at %v, and %v begins at %v", l, values, high, next, begins)
			}
		}
		if before, err := l.Packing.Unpack(packed - 1); err == nil {
			if score := scoreOf(before, 1<<l.K-1); score >= low {
				t.Fatalf("%v: %v has %v, which isn't below %v, where %v begins", l, before, score, low, values)
			}
		}
		other := drawTuple(t, f, "other")
		score := scoreOf(other, drawTicks(t, l.layout()))
		if inside := score >= low && score < high; inside != (other == values) {
			t.Fatalf("%v: %v has the score %v, and [%v, %v) is %v", l, other, score, low, high, values)
		}
	})
}

// The first and the last number of a layout, and the numbers on both sides of a power of two, where a wide
// score's exponent changes.
func TestBoundsAtTheEndsOfALayout(t *testing.T) {
	field := func(limit int64, signed bool) Fields {
		return mustFields(t, Field{Name: "n", Max: limit, Signed: signed})
	}
	const allTime = (1<<32 - 1) * time.Second
	for _, c := range []struct {
		kind      Kind
		fields    Fields
		value     int64
		low, high float64
	}{
		{Readable, field(widest, true), -widest, -widest, -widest + 1},
		{Readable, field(widest, true), widest, widest, 1 << 52},
		{Readable, field(9, true), -1, -1, 0},
		{Readable, field(9, true), 0, 0, 1},
		{Wide, field(9, true), -9, 0x1p-1022, 0},
		// With k 42, 2^10 numbers have the same exponent.
		{Wide, field(1023<<11-1, false), 1023<<11 - 1, 0, math.Inf(1)},
		{Wide, field(1023<<11-1, false), 1<<10 - 1, 0, 0x1p-1021},
		{Wide, field(1023<<11-1, false), 1 << 10, 0x1p-1021, 0x1p-1021 + 0x1p-1031},
	} {
		l := mustTupleLayout(t, c.kind, allTime, c.fields)
		low, high := mustBounds(t, l, Tuple{c.value})
		if c.low != 0 && low != c.low || c.high != 0 && high != c.high {
			t.Errorf("%v: %d is in [%v, %v), want [%v, %v)", l, c.value, low, high, c.low, c.high)
		}
		most, err := l.Encode(Tuple{c.value}, 1<<l.K-1)
		require.NoError(t, err)
		if c.kind == Wide && high != math.Nextafter(most, math.Inf(1)) {
			t.Errorf("%v: %d ends at %v, and the double after its last score is %v", l, c.value, high, math.Nextafter(most, math.Inf(1)))
		}
	}
}

func TestATupleOutOfRangeHasNoBounds(t *testing.T) {
	for _, kind := range kinds {
		l := mustTupleLayout(t, kind, weekly, mustFields(t, arena...))
		for _, values := range []Tuple{{1000, 0}, {-1, 0}, {0, 100}} {
			if low, high, err := l.Bounds(values); !errors.Is(err, ErrRange) || low != 0 || high != 0 {
				t.Errorf("%v: %v is in [%v, %v), %v; want ErrRange", l, values, low, high, err)
			}
		}
	}
}
