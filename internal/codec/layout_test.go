// The layouts that configurations result in, and the refusals with what would fit.

package codec

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	daily     = 36 * time.Hour
	weekly    = 180 * time.Hour
	monthly   = 756 * time.Hour
	quarterly = 2220 * time.Hour
	yearly    = 8796 * time.Hour
	allTime   = 1 << 32 * time.Second
)

func mustNew(t testing.TB, kind Kind, length time.Duration, limit int64) Layout {
	t.Helper()
	l, err := New(kind, length, limit)
	require.NoError(t, err)
	return l
}

func TestLayoutsHaveTheNumbersTheDesignPromises(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		length time.Duration
		max    int64
		k      int
		tick   int64
	}{
		{Readable, daily, 99_999_999, 26, 2},
		{Readable, weekly, 99_999_999, 26, 10},
		{Readable, monthly, 99_999_999, 26, 41},
		{Readable, quarterly, 99_999_999, 26, 120},
		{Readable, yearly, 99_999_999, 26, 472},
		{Readable, allTime, 99_999_999, 26, 64_000},
		{Readable, weekly, 1, 30, 1}, // no more bits than 1 ms needs
		{Wide, weekly, 2_000_000_000, 30, 1},
		{Wide, monthly, 2_000_000_000, 31, 2},
		{Wide, yearly, 2_000_000_000, 31, 15},
		{Wide, yearly, 10_000_000_000, 28, 118},
		{Wide, allTime, 99_999_999, 35, 125},
	} {
		want := Layout{Kind: c.kind, K: c.k, Tick: c.tick, Max: c.max}
		if got := mustNew(t, c.kind, c.length, c.max); got != want {
			t.Errorf("New(%s, %v, %d) = %+v, want %+v", c.kind, c.length, c.max, got, want)
		}
	}
}

func TestAnImpossibleRangeIsRefusedWithWhatWouldFit(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		length time.Duration
		max    int64
		says   string
	}{
		{Readable, weekly, 0, "±1 to ±4503599627370495"},
		{Readable, weekly, -5, "±1 to ±4503599627370495"},
		{Readable, yearly, 1 << 52, "±268435455 keeps the tick of a 8796h0m0s window within a second"},
		{Readable, weekly, math.MaxInt64, "±8589934591 keeps"},
		{Wide, yearly, 1 << 52, "±137304735743 keeps"},
		{Wide, weekly, math.MinInt64, "±1 to ±4503599627370495"},
		{Readable, 0, 100, "at least 1ms"},
		{Wide, -time.Second, 100, "at least 1ms"},
	} {
		l, err := New(c.kind, c.length, c.max)
		if !errors.Is(err, ErrRange) || l != (Layout{}) {
			t.Errorf("New(%s, %v, %d) = %v, %v; want ErrRange", c.kind, c.length, c.max, l, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("New(%s, %v, %d): %q doesn't say %q", c.kind, c.length, c.max, err, c.says)
		}
	}
}

func TestWhatARefusalSaysWouldFitFitsAndIsTheLargest(t *testing.T) {
	for _, kind := range []Kind{Readable, Wide} {
		for _, length := range []time.Duration{time.Millisecond, time.Second, 1001 * time.Millisecond, daily, weekly, yearly, allTime, math.MaxInt64} {
			if l := mustNew(t, kind, length, widest); l.K < 1 {
				t.Errorf("%v has no ticks", l)
			}
			ms := ceilDiv(int64(length), int64(time.Millisecond))
			fits := largest(kind, bitsFor(ceilDiv(ms, coarse)))
			if l := mustNew(t, kind, length, fits); l.Coarse() {
				t.Errorf("%v over %v is coarse", l, length)
			}
			if fits < widest && !mustNew(t, kind, length, fits+1).Coarse() {
				t.Errorf("%s over %v: ±%d isn't the largest range with a tick within a second", kind, length, fits)
			}
		}
	}
}

func TestAnUnknownKindIsRefusedByName(t *testing.T) {
	_, err := New("broad", weekly, 100)
	if err == nil || err.Error() != `layout "broad": must be "readable" or "wide"` {
		t.Errorf("New: %v", err)
	}
}

func TestOnlyATickAboveASecondIsCoarse(t *testing.T) {
	for tick, want := range map[int64]bool{1: false, 999: false, 1000: false, 1001: true} {
		if got := (Layout{Kind: Wide, K: 20, Tick: tick, Max: 1}).Coarse(); got != want {
			t.Errorf("a tick of %d ms: coarse %v", tick, got)
		}
	}
}
