// Tuples and ticks in a score: resulting layouts, what would fit, and the laws.

package codec

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustTupleLayout(t rapid.TB, kind Kind, length time.Duration, f Fields) TupleLayout {
	t.Helper()
	l, err := NewTupleLayout(kind, length, f)
	require.NoError(t, err)
	return l
}

func TestASingleSignedFieldComesToTheLayoutOfItsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		length := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length"))
		limit := near(1, 1<<rapid.IntRange(1, 52).Draw(t, "bits")-1).Draw(t, "max")
		fewest := rapid.Bool().Draw(t, "fewest")
		want, err := New(kind, length, limit)
		require.NoError(t, err)
		l := mustTupleLayout(t, kind, length, mustFields(t, Field{Name: "points", Max: limit, Signed: true, Fewest: fewest}))
		if l.layout() != want || l.Packing.Min() != -limit {
			t.Fatalf("%+v, want %+v", l, want)
		}
		value, ticks := drawPoints(t, want), drawTicks(t, want)
		ranked := value
		if fewest {
			ranked = -value
		}
		if score, err := l.Encode(Tuple{value}, ticks); err != nil || score != mustEncode(t, want, ranked, ticks) {
			t.Fatalf("%v: the score of %d is %v, %v", l, value, score, err)
		}
	})
}

func TestWhatFieldsComeToIsSaid(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		length time.Duration
		list   []Field
		says   string
	}{
		{Readable, weekly, arena, "readable: k 30, tick 1ms, stage 0 to 999; revives 0 to 99, fewest first; packed 0 to 99999"},
		{Readable, yearly, medals, "readable: k 13, tick 1h4m25.43s, gold 0 to 9999; silver 0 to 9999; bronze 0 to 9999; packed 0 to 999999999999"},
		{Wide, yearly, medals, "wide: k 23, tick 3.775s, gold 0 to 9999; silver 0 to 9999; bronze 0 to 9999; packed 0 to 999999999999"},
		{Readable, yearly, lap, "readable: k 31, tick 15ms, lap_ms 0 to 3599999, fewest first"},
		{Readable, weekly, points, "readable: k 26, tick 10ms, points within ±99999999"},
	} {
		if got := mustTupleLayout(t, c.kind, c.length, mustFields(t, c.list...)).String(); got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}

func TestATupleLayoutUsesAllTheBitsThatHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		length := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length"))
		f := fieldSets(kind).Draw(t, "fields")
		l := mustTupleLayout(t, kind, length, f)
		ms := int64((length-1)/time.Millisecond) + 1
		k, tick := bigTupleLayout(kind, ms, l.Packing.Min(), l.Packing.Max)
		if l.K != k || l.Tick != tick {
			t.Fatalf("%v over %v; exact arithmetic says k %d, tick %d", l, length, k, tick)
		}
	})
}

func TestFieldsThatDontFitAreRefusedWithWhatWould(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		length time.Duration
		list   []Field
		says   []string
	}{
		{Readable, weekly, []Field{{Name: "level", Max: 60}, {Name: "xp", Max: 99_999_999_999_999}},
			[]string{"layout readable: level 0 to 60; xp 0 to 99999999999999: out of range: max 9999999999999 of xp fits, and up to 99999999 keeps the tick",
				"of a 180h0m0s window within a second; or layout wide holds them as they are, with a tick of 10m32.813s"}},
		{Readable, weekly, []Field{{Name: "a", Max: 1 << 52}}, []string{"max 4503599627370495 of a fits, and up to 8589934591 keeps the tick of a 180h0m0s window within a second",
			"layout wide holds them as they are, with a tick of 10m32.813s"}},
		{Wide, yearly, []Field{{Name: "a", Max: math.MaxInt64}, {Name: "b", Max: 1}}, []string{"out of range: max 4503599627370495 of a fits, and up to 137304735743 keeps the tick"}},
		{Wide, weekly, []Field{{Name: "a", Max: math.MaxInt64}, {Name: "b", Max: math.MaxInt64}}, []string{"out of range: max 94906264 of every field fits (2964371 within a second)"}},
		{Readable, weekly, []Field{{Name: "p", Max: 1 << 60, Signed: true}}, []string{"p within ±1152921504606846976: out of range: max 4503599627370495 of p fits"}},
		{Readable, 0, arena, []string{"at least 1ms"}},
		{Readable, weekly, nil, []string{"1 to 5 fields fit"}},
		{"broad", weekly, arena, []string{`layout "broad": must be "readable" or "wide"`}},
	} {
		var f Fields
		if len(c.list) > 0 {
			f = mustFields(t, c.list...)
		}
		l, err := NewTupleLayout(c.kind, c.length, f)
		if err == nil || l != (TupleLayout{}) || c.kind != "broad" && !errors.Is(err, ErrRange) {
			t.Errorf("%s %v: %v, %v; want ErrRange", c.kind, c.list, l, err)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s %v: %q doesn't say %q", c.kind, c.list, err, says)
			}
		}
	}
}

func TestWhatARefusalSaysWouldFitFitsAndNoMoreDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		list := make([]Field, rapid.IntRange(1, MaxFields).Draw(t, "fields"))
		for i := range list {
			list[i] = Field{Name: string(rune('a' + i)), Max: near(1, math.MaxInt64>>rapid.IntRange(0, 50).Draw(t, "bits")).Draw(t, "max")}
		}
		f := mustFields(t, list...)
		const ms = 180 * 3_600_000
		for _, fine := range []bool{false, true} {
			fits := func(f Fields) bool {
				l, err := NewTupleLayout(kind, weekly, f)
				return err == nil && (!fine || !l.Coarse())
			}
			most := largestMax(kind, ms, fine, f.capped)
			if most < 1 && !fine || most > 0 && !fits(f.capped(most)) || !fits(f) && fits(f.capped(most+1)) {
				t.Fatalf("%s %v: every field up to %d isn't what fits (a tick within a second: %v)", kind, f, most, fine)
			}
			i := rapid.IntRange(0, f.n-1).Draw(t, "one")
			most = largestMax(kind, ms, fine, func(limit int64) Fields { return f.withMax(i, limit) })
			if most > 0 && !fits(f.withMax(i, most)) || fits(f.withMax(i, most+1)) {
				t.Fatalf("%s %v: field %d up to %d isn't what fits (a tick within a second: %v)", kind, f, i, most, fine)
			}
		}
	})
}

func TestTuplesAndTicksComeBackExactlyAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		l := mustTupleLayout(t, kind, time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "length")), f)
		a, b := drawTuple(t, f, "a"), drawTuple(t, f, "b")
		if rapid.Bool().Draw(t, "equal") {
			b = a
		}
		m, n := drawTicks(t, l.layout()), drawTicks(t, l.layout())
		scoreOf := func(values Tuple, ticks int64) float64 {
			score, err := l.Encode(values, ticks)
			require.NoError(t, err)
			if back, had, err := l.Decode(score); err != nil || back != values || had != ticks {
				t.Fatalf("%v: %v with %d ticks is %v, which is %v with %d ticks, %v", l, values, ticks, score, back, had, err)
			}
			return score
		}
		x, y := scoreOf(a, m), scoreOf(b, n)
		want := compare(f.List(), a, b)
		if want == 0 {
			want = sign(m - n)
		}
		if (x > y) != (want > 0) || (x == y) != (want == 0) {
			t.Fatalf("%v: %v/%d has %v, %v/%d has %v", l, a, m, x, b, n, y)
		}
		if kind == Readable && int64(math.Floor(x)) != mustPack(t, l.Packing, a) {
			t.Fatalf("%v: the whole part of %v isn't %d", l, x, mustPack(t, l.Packing, a))
		}
	})
}

func TestTicksThatALayoutHasNoRoomForAreRefused(t *testing.T) {
	for _, kind := range kinds {
		l := mustTupleLayout(t, kind, weekly, mustFields(t, arena...))
		for ticks, fits := range map[int64]bool{-1: false, 0: true, 1<<l.K - 1: true, 1 << l.K: false, math.MaxInt64: false, math.MinInt64: false} {
			if score, err := l.Encode(Tuple{1, 1}, ticks); fits != (err == nil) || !fits && (!errors.Is(err, ErrRange) || score != 0) {
				t.Errorf("%v: Encode(1/1, %d) = %v, %v; fits: %v", l, ticks, score, err, fits)
			}
		}
		start, end := int64(0), int64(1_000_000)
		if l.Ticks(start, end, 5) != l.layout().Ticks(start, end, 5) || l.Time(start, end, 7) != l.layout().Time(start, end, 7) || l.Coarse() {
			t.Errorf("%v has another time than its layout", l)
		}
	}
}

// checkDecodeTuple checks Decode against exact arithmetic: it accepts scores, and refuses doubles that are
// no scores or have a digit above its field's max.
func checkDecodeTuple(t rapid.TB, l TupleLayout, score float64) {
	t.Helper()
	packed, ticks, ok := bigDecodeTuple(l.layout(), l.Packing.Min(), math.Float64bits(score))
	tuple, got, err := l.Decode(score)
	switch {
	case ok && !pastADigit(l.Packing, packed):
		if err != nil || got != ticks || mustPack(t, l.Packing, tuple) != packed {
			t.Errorf("%v: Decode(%v) = %v, %d, %v; want %d with %d ticks", l, score, tuple, got, err, packed, ticks)
		} else if again, err := l.Encode(tuple, got); err != nil || again != score {
			t.Errorf("%v: %v is %v with %d ticks, which is %v, %v", l, score, tuple, got, again, err)
		}
	case !errors.Is(err, ErrScore) || tuple != (Tuple{}) || got != 0:
		t.Errorf("%v: Decode(%v, bits %#x) = %v, %d, %v; want ErrScore", l, score, math.Float64bits(score), tuple, got, err)
	}
}

func TestDecodeTakesOnlyTheScoresOfTuples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		l := mustTupleLayout(t, kind, weekly, f)
		score := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "near a score") {
			var err error
			if score, err = l.Encode(drawTuple(t, f, "value"), drawTicks(t, l.layout())); err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 3).Draw(t, "how near") {
			case 0:
				score = math.Nextafter(score, math.Inf(1))
			case 1:
				score = math.Nextafter(score, math.Inf(-1))
			case 2:
				score += float64(rapid.Int64Range(-1000, 1000).Draw(t, "off"))
			}
		}
		checkDecodeTuple(t, l, score)
	})
}

func FuzzDecodeTuple(f *testing.F) {
	var all []TupleLayout
	for _, g := range readGoldenTuples(f) {
		all = append(all, g.layout(f))
	}
	f.Fuzz(func(t *testing.T, bits uint64, which uint8) {
		checkDecodeTuple(t, all[int(which)%len(all)], math.Float64frombits(bits))
	})
}

// FuzzUnpack uses fields with any max, also fields that fit no layout.
func FuzzUnpack(f *testing.F) {
	f.Add(uint64(999), uint64(99), uint64(0), uint8(2), int64(4296))
	f.Fuzz(func(t *testing.T, a, b, c uint64, form uint8, packed int64) {
		list := make([]Field, form%3+1)
		for i, limit := range []uint64{a, b, c}[:len(list)] {
			list[i] = Field{Name: string(rune('a' + i)), Max: int64(limit >> 1), Fewest: form>>(3+i)&1 == 1}
		}
		list[0].Signed = form>>6&1 == 1
		fields, err := NewFields(list...)
		if err != nil {
			return
		}
		kind := kinds[form>>7]
		p, err := NewPacking(kind, fields)
		if err != nil {
			if bigPack(kind, list, bestOf(list)).IsInt64() && bigPack(kind, list, bestOf(list)).Int64() <= widest {
				t.Fatalf("%v fits, and was refused: %v", fields, err)
			}
			return
		}
		checkUnpack(t, p, packed)
	})
}
