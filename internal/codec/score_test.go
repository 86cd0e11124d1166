// The laws of scores, for random layouts and for numbers near their limits.

package codec

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func wantRefused(t rapid.TB, l Layout, score float64) {
	t.Helper()
	points, ticks, err := l.Decode(score)
	if !errors.Is(err, ErrScore) || points != 0 || ticks != 0 {
		t.Errorf("%v: Decode(%v, bits %#x) = %d, %d, %v; want ErrScore", l, score, math.Float64bits(score), points, ticks, err)
	}
}

// layouts draws any layout that New can return, also with ranges near powers of two.
func layouts() *rapid.Generator[Layout] {
	return rapid.Custom(func(t *rapid.T) Layout {
		kind := rapid.SampledFrom([]Kind{Readable, Wide}).Draw(t, "kind")
		length := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length"))
		limit := int64(1) << rapid.IntRange(1, 52).Draw(t, "bits")
		l, err := New(kind, length, near(1, limit-1).Draw(t, "max"))
		require.NoError(t, err)
		return l
	})
}

// near draws from [lo, hi], often near its ends or zero.
func near(lo, hi int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(lo, hi),
		rapid.Int64Range(lo, min(hi, lo+3)),
		rapid.Int64Range(max(lo, hi-3), hi),
		rapid.Int64Range(max(lo, min(-3, hi)), min(hi, max(3, lo))),
	)
}

func drawPoints(t *rapid.T, l Layout) int64 { return near(-l.Max, l.Max).Draw(t, "points") }
func drawTicks(t *rapid.T, l Layout) int64  { return near(0, 1<<l.K-1).Draw(t, "ticks") }

func mustEncode(t *rapid.T, l Layout, points, ticks int64) float64 {
	score, err := l.Encode(points, ticks)
	require.NoError(t, err)
	return score
}

func TestWhatWasEncodedIsDecodedExactlyAlsoFromText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		points, ticks := drawPoints(t, l), drawTicks(t, l)
		score := mustEncode(t, l, points, ticks)
		if want := bigEncode(t, l, points, ticks); math.Float64bits(score) != want {
			t.Fatalf("%v: bits %#x, exact arithmetic says %#x", l, math.Float64bits(score), want)
		}
		for _, digits := range []int{-1, 17} {
			read, err := strconv.ParseFloat(strconv.FormatFloat(score, 'g', digits, 64), 64)
			require.NoError(t, err)
			p, n, err := l.Decode(read)
			if err != nil || p != points || n != ticks {
				t.Fatalf("%v: Decode = %d, %d, %v; want %d, %d", l, p, n, err, points, ticks)
			}
		}
	})
}

func TestScoresRiseWithPointsThenWithTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		points, ticks := drawPoints(t, l), drawTicks(t, l)
		others, otherTicks := drawPoints(t, l), drawTicks(t, l)
		if rapid.Bool().Draw(t, "equal points") {
			others = points
		}
		a, b := mustEncode(t, l, points, ticks), mustEncode(t, l, others, otherTicks)
		less := points < others || points == others && ticks < otherTicks
		equal := points == others && ticks == otherTicks
		if (a < b) != less || (a == b) != equal {
			t.Fatalf("%v: %d/%d has %v, %d/%d has %v", l, points, ticks, a, others, otherTicks, b)
		}
	})
}

func TestNeighbouringScoresHaveNothingBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		points := near(-l.Max, l.Max-1).Draw(t, "points")
		last := mustEncode(t, l, points, 1<<l.K-1)
		first := mustEncode(t, l, points+1, 0)
		between := math.Nextafter(last, math.Inf(1))
		if l.Kind == Wide && between != first {
			t.Fatalf("%v: a double between %d's last score and the next points' first", l, points)
		}
		for ; between < first; between = math.Nextafter(last+(first-between)/2, first) {
			wantRefused(t, l, between)
			last = between
		}
	})
}

func TestDecodeTakesOnlyWhatEncodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		score := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "near a score") {
			score = mustEncode(t, l, drawPoints(t, l), drawTicks(t, l))
			step := rapid.SampledFrom([]float64{math.Inf(-1), math.Inf(1), score}).Draw(t, "towards")
			score = math.Nextafter(score, step)
		}
		checkDecode(t, l, score)
	})
}

// checkDecode checks Decode against exact arithmetic, and Encode against Decode.
func checkDecode(t rapid.TB, l Layout, score float64) {
	t.Helper()
	bits := math.Float64bits(score)
	wantPoints, wantTicks, ok := bigDecode(l, bits)
	if !ok {
		wantRefused(t, l, score)
		return
	}
	points, ticks, err := l.Decode(score)
	if err != nil || points != wantPoints || ticks != wantTicks {
		t.Errorf("%v: Decode(%v) = %d, %d, %v; want %d, %d", l, score, points, ticks, err, wantPoints, wantTicks)
		return
	}
	again, err := l.Encode(points, ticks)
	if err != nil || again != score {
		t.Errorf("%v: %v decodes to %d, %d, which encodes to %v, %v", l, score, points, ticks, again, err)
	}
}

func TestEncodeRefusesWhatTheLayoutCannotHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		points, ticks := drawPoints(t, l), drawTicks(t, l)
		if rapid.Bool().Draw(t, "points are outside") {
			points = rapid.OneOf(
				near(l.Max+1, math.MaxInt64), near(math.MinInt64, -l.Max-1)).Draw(t, "outside")
		} else {
			ticks = rapid.OneOf(
				near(1<<l.K, math.MaxInt64), near(math.MinInt64, -1)).Draw(t, "outside")
		}
		if score, err := l.Encode(points, ticks); !errors.Is(err, ErrRange) || score != 0 {
			t.Fatalf("%v: Encode(%d, %d) = %v, %v; want ErrRange", l, points, ticks, score, err)
		}
	})
}

func TestTheZeroLayoutHasNoScores(t *testing.T) {
	var l Layout
	if _, err := l.Encode(0, 0); !errors.Is(err, ErrRange) {
		t.Errorf("Encode: %v", err)
	}
	wantRefused(t, l, 0)
}

func FuzzDecode(f *testing.F) {
	var all []Layout
	for _, g := range readGolden(f) {
		all = append(all, g.layout())
	}
	f.Fuzz(func(t *testing.T, bits uint64, which uint8) {
		checkDecode(t, all[int(which)%len(all)], math.Float64frombits(bits))
	})
}
