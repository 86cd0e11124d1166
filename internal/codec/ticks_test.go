// The laws of ticks, for random layouts and for windows up to the length that they were made for.

package codec

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawWindow draws a window of at most 2^K ticks.
func drawWindow(t *rapid.T, l Layout) (start, end int64) {
	longest := l.Tick << l.K
	length := near(1, longest).Draw(t, "length")
	start = near(0, 1<<42).Draw(t, "start")
	return start, start + length
}

func TestATickBeginsAtMostOneTickBeforeItsTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		start, end := drawWindow(t, l)
		at := near(start, end-1).Draw(t, "at")
		ticks := l.Ticks(start, end, at)
		if want, _ := bigTicks(start, end, at, l.Tick); ticks != want {
			t.Fatalf("%v: Ticks(%d, %d, %d) = %d, want %d", l, start, end, at, ticks, want)
		}
		if _, err := l.Encode(0, ticks); err != nil {
			t.Fatalf("a time in the window has no score: %v", err)
		}
		first := l.Time(start, end, ticks)
		if first < start || first > at || at-first >= l.Tick {
			t.Fatalf("%v: %d in [%d, %d) is shown as %d", l, at, start, end, first)
		}
		if l.Ticks(start, end, first) != ticks || first > start && l.Ticks(start, end, first-1) == ticks {
			t.Fatalf("%v: %d isn't the first ms of tick %d of [%d, %d)", l, first, ticks, start, end)
		}
	})
}

func TestAnEarlierTimeNeverHasFewerTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		start, end := drawWindow(t, l)
		early, late := near(start, end-1).Draw(t, "a"), near(start, end-1).Draw(t, "b")
		if early > late {
			early, late = late, early
		}
		a, b := l.Ticks(start, end, early), l.Ticks(start, end, late)
		if a < b || late-early >= l.Tick && a == b {
			t.Fatalf("%v: %d has %d ticks, %d has %d", l, early, a, late, b)
		}
	})
}

func TestAWindowTooLongForTheLayoutIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		start, _ := drawWindow(t, l)
		start -= rapid.SampledFrom([]int64{0, 1, math.MaxInt64}).Draw(t, "earlier")
		shortest := max(start, 0) + l.Tick<<l.K + 1
		end := near(shortest, math.MaxInt64).Draw(t, "end")
		if _, err := l.Encode(1, l.Ticks(start, end, start)); !errors.Is(err, ErrRange) {
			t.Fatalf("%v: start of [%d, %d) was taken: %v", l, start, end, err)
		}
	})
	// The window is longer than an int64, so the difference would overflow to -3.
	l := mustNew(t, Readable, allTime, 99_999_999)
	if ticks := l.Ticks(-math.MaxInt64, math.MaxInt64, math.MinInt64); ticks < 1<<l.K {
		t.Errorf("%v: a window of nearly 2^64 ms has %d ticks", l, ticks)
	}
}
