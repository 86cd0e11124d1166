// The laws of packing, tested against exact arithmetic: concatenated decimal digits, and mixed radix step
// by step.

package codec

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// bigPack packs as the design describes: readable concatenates decimal digits, wide uses mixed radix.
func bigPack(kind Kind, list []Field, t Tuple) *big.Int {
	n := new(big.Int)
	var text strings.Builder
	for i, f := range list {
		digit := t[i]
		switch {
		case f.Fewest && f.Signed:
			digit = -digit
		case f.Fewest:
			digit = f.Max - digit
		}
		if len(list) == 1 {
			return n.SetInt64(digit)
		}
		fmt.Fprintf(&text, "%0*d", len(fmt.Sprint(f.Max)), digit)
		n.Mul(n, new(big.Int).Add(big.NewInt(f.Max), big.NewInt(1)))
		n.Add(n, big.NewInt(digit))
	}
	if kind == Readable {
		n, _ = new(big.Int).SetString(text.String(), 10)
	}
	return n
}

// bestOf returns the tuple that ranks first.
func bestOf(list []Field) (t Tuple) {
	for i, f := range list {
		switch {
		case !f.Fewest:
			t[i] = f.Max
		case f.Signed:
			t[i] = -f.Max
		}
	}
	return t
}

func mustPacking(t rapid.TB, kind Kind, f Fields) Packing {
	t.Helper()
	p, err := NewPacking(kind, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustPack(t rapid.TB, p Packing, values Tuple) int64 {
	t.Helper()
	packed, err := p.Pack(values)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestTheExamplesOfTheDesignArePacked(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		list   []Field
		tuple  Tuple
		packed int64
	}{
		{Readable, arena, Tuple{42, 3}, 4296}, // stage 42 with 3 of at most 99 revives
		{Wide, arena, Tuple{42, 3}, 42*100 + 96},
		{Readable, arena, Tuple{999, 0}, 99_999},
		{Readable, medals, Tuple{1, 20, 3}, 1_0020_0003},
		{Wide, medals, Tuple{1, 20, 3}, (1*10_000+20)*10_000 + 3},
		{Readable, []Field{{Name: "level", Max: 60}, {Name: "xp", Max: 5000}}, Tuple{7, 250}, 70_250},
		{Wide, []Field{{Name: "level", Max: 60}, {Name: "xp", Max: 5000}}, Tuple{7, 250}, 7*5001 + 250},
		{Readable, lap, Tuple{83_412}, 3_599_999 - 83_412},
		{Readable, points, Tuple{-25}, -25},
		{Wide, points, Tuple{-25}, -25},
		{Readable, golf, Tuple{-4}, 4},
	} {
		p := mustPacking(t, c.kind, mustFields(t, c.list...))
		if got := mustPack(t, p, c.tuple); got != c.packed {
			t.Errorf("%v of %v is %d in %s, want %d", c.tuple, p.Fields, got, c.kind, c.packed)
		}
		if got, err := p.Unpack(c.packed); err != nil || got != c.tuple {
			t.Errorf("%d of %v is %v, %v in %s, want %v", c.packed, p.Fields, got, err, c.kind, c.tuple)
		}
	}
}

func TestPackedTuplesComeBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		p := mustPacking(t, kind, f)
		tuple := drawTuple(t, f, "value")
		packed := mustPack(t, p, tuple)
		if want := bigPack(kind, f.List(), tuple); want.Cmp(big.NewInt(packed)) != 0 {
			t.Fatalf("%v of %v is %d, exact arithmetic says %v", tuple, f, packed, want)
		}
		if packed > p.Max || packed < p.Min() {
			t.Fatalf("%v of %v is %d, past %d", tuple, f, packed, p.Max)
		}
		if back, err := p.Unpack(packed); err != nil || back != tuple {
			t.Fatalf("%v of %v is %d, which is %v, %v", tuple, f, packed, back, err)
		}
		if got := mustPack(t, p, bestOf(f.List())); got != p.Max {
			t.Fatalf("the best tuple of %v is %d, and the largest %d", f, got, p.Max)
		}
		if digits := f.Digits(tuple); f.Digits(digits) != tuple {
			t.Fatalf("%v of %v has the digits %v, which are those of %v", tuple, f, digits, f.Digits(digits))
		}
	})
}

// compare compares tuples field by field.
func compare(list []Field, a, b Tuple) int {
	for i, f := range list {
		if a[i] != b[i] {
			if (a[i] > b[i]) != f.Fewest {
				return 1
			}
			return -1
		}
	}
	return 0
}

func sign(n int64) int {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}

func TestTheOrderOfPackedTuplesIsThatOfTheTuples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		p := mustPacking(t, kind, f)
		a, b := drawTuple(t, f, "a"), drawTuple(t, f, "b")
		for i := range rapid.IntRange(0, f.n).Draw(t, "equal") {
			b[i] = a[i]
		}
		if got := sign(mustPack(t, p, a) - mustPack(t, p, b)); got != compare(f.List(), a, b) {
			t.Fatalf("%v of %v is %d, %v is %d", a, f, mustPack(t, p, a), b, mustPack(t, p, b))
		}
	})
}

func TestAChangeIsPackedByDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		p := mustPacking(t, kind, f)
		a, b := drawTuple(t, f, "a"), drawTuple(t, f, "b")
		for i := range rapid.IntRange(0, f.n).Draw(t, "equal") {
			b[i] = a[i]
		}
		var change, half, rest Tuple
		for i := range f.n {
			change[i] = b[i] - a[i]
			half[i] = near(-f.of[i].Max, f.of[i].Max).Draw(t, "part")
			rest[i] = change[i] - half[i]
		}
		delta := p.Delta(change)
		if mustPack(t, p, a)+delta != mustPack(t, p, b) {
			t.Fatalf("%v of %v, changed by %v: %d + %d isn't %d", a, f, change, mustPack(t, p, a), delta, mustPack(t, p, b))
		}
		if p.Delta(half)+p.Delta(rest) != delta {
			t.Fatalf("%v + %v of %v: %d + %d isn't %d", half, rest, f, p.Delta(half), p.Delta(rest), delta)
		}
		if sign(delta) != compare(f.List(), b, a) {
			t.Fatalf("%v of %v changed to %v by %d", a, f, b, delta)
		}
		// Any change within the fields' ranges, whatever the result: its first changed field decides.
		if got, want := sign(p.Delta(half)), compare(f.List(), half, Tuple{}); got != want {
			t.Fatalf("a change of %v of %v has the sign %d, want %d", half, f, got, want)
		}
		if f.Turned(f.Turned(change)) != change {
			t.Fatalf("%v of %v turned twice is %v", change, f, f.Turned(f.Turned(change)))
		}
	})
}

func TestAPackedChangeDoesNotTellItsFields(t *testing.T) {
	p := mustPacking(t, Wide, mustFields(t, Field{Name: "a", Max: 9}, Field{Name: "b", Max: 9}))
	if a, b := p.Delta(Tuple{1, -1}), p.Delta(Tuple{0, 9}); a != 9 || b != 9 {
		t.Errorf("%d and %d, want 9 twice", a, b)
	}
}

func TestWhatIsNoPackedTupleIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		p := mustPacking(t, kind, f)
		packed := rapid.OneOf(near(-p.Max-3, p.Max+3), near(math.MinInt64, math.MaxInt64)).Draw(t, "packed")
		checkUnpack(t, p, packed)
	})
}

// checkUnpack checks Unpack against Pack: an accepted number is packed to the same number, and a refused
// number has a digit above its field's max.
func checkUnpack(t rapid.TB, p Packing, packed int64) {
	t.Helper()
	tuple, err := p.Unpack(packed)
	if err == nil {
		if again, err := p.Pack(tuple); err != nil || again != packed {
			t.Errorf("%d of %v is %v, which is %d, %v", packed, p.Fields, tuple, again, err)
		}
		return
	}
	if !errors.Is(err, ErrRange) || tuple != (Tuple{}) {
		t.Errorf("%d of %v is %v, %v; want ErrRange", packed, p.Fields, tuple, err)
	}
	if inside := packed <= p.Max && packed >= p.Min(); inside && !pastADigit(p, packed) {
		t.Errorf("%d of %v has a tuple, and was refused: %v", packed, p.Fields, err)
	}
}

func pastADigit(p Packing, packed int64) bool {
	if p.Kind != Readable || p.Min() < 0 {
		return false
	}
	list := p.Fields.List()
	text := fmt.Sprint(packed)
	for _, f := range slices.Backward(list[1:]) {
		n := len(fmt.Sprint(f.Max))
		text = strings.Repeat("0", max(0, n-len(text))) + text
		digit := text[len(text)-n:]
		if digit > fmt.Sprint(f.Max) {
			return true
		}
		text = text[:len(text)-n]
	}
	return false
}

func TestATupleOutOfRangeIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		f := fieldSets(kind).Draw(t, "fields")
		p := mustPacking(t, kind, f)
		tuple := drawTuple(t, f, "value")
		i := rapid.IntRange(0, f.n-1).Draw(t, "field")
		low := int64(0)
		if f.of[i].Signed {
			low = -f.of[i].Max
		}
		tuple[i] = rapid.OneOf(near(f.of[i].Max+1, math.MaxInt64), near(math.MinInt64, low-1)).Draw(t, "outside")
		if packed, err := p.Pack(tuple); !errors.Is(err, ErrRange) || packed != 0 || f.Holds(tuple) {
			t.Fatalf("%v of %v is %d, %v; want ErrRange", tuple, f, packed, err)
		}
	})
}

func TestFieldsThatTakeMoreThanAKindHoldsAreRefused(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		list []Field
		fits bool
	}{
		{Readable, []Field{{Name: "a", Max: widest}}, true},
		{Readable, []Field{{Name: "a", Max: widest + 1}}, false},
		{Wide, []Field{{Name: "a", Max: widestUnsigned}}, true},
		{Wide, []Field{{Name: "a", Max: widestUnsigned + 1}}, false},
		{Wide, []Field{{Name: "a", Max: widest, Signed: true}}, true},
		{Wide, []Field{{Name: "a", Max: widest + 1, Signed: true}}, false},
		{Wide, []Field{{Name: "a", Max: 1<<26 - 1}, {Name: "b", Max: 1<<27 - 1}}, true},
		{Wide, []Field{{Name: "a", Max: 1<<26 - 1}, {Name: "b", Max: 1 << 27}}, false},
		{Wide, []Field{{Name: "a", Max: math.MaxInt64}, {Name: "b", Max: math.MaxInt64}}, false},
		{Readable, []Field{{Name: "a", Max: 9_999_999}, {Name: "b", Max: 99_999_999}}, true},
		{Readable, []Field{{Name: "a", Max: 99_999_999}, {Name: "b", Max: 99_999_999}}, false},
		{Readable, []Field{{Name: "a", Max: math.MaxInt64}, {Name: "b", Max: math.MaxInt64}}, false},
		{Readable, []Field{{Name: "a", Max: 1}, {Name: "b", Max: math.MaxInt64}, {Name: "c", Max: math.MaxInt64}, {Name: "d", Max: math.MaxInt64}, {Name: "e", Max: math.MaxInt64}}, false},
	} {
		p, err := NewPacking(c.kind, mustFields(t, c.list...))
		if c.fits != (err == nil) || !c.fits && (!errors.Is(err, ErrRange) || p != (Packing{})) {
			t.Errorf("NewPacking(%s, %v) = %+v, %v; fits: %v", c.kind, c.list, p, err, c.fits)
		}
	}
	if _, err := NewPacking(Wide, Fields{}); !errors.Is(err, ErrRange) {
		t.Errorf("no fields: %v", err)
	}
}

func TestASumBeginsWithZeroInEveryField(t *testing.T) {
	for want, list := range map[int64][]Field{99: arena, 3_599_999: lap, 0: medals} {
		p := mustPacking(t, Readable, mustFields(t, list...))
		if got := p.Zero(); got != want {
			t.Errorf("%v begins with %d, want %d", p.Fields, got, want)
		}
	}
}

func TestPackingAllocatesNothing(t *testing.T) {
	p := mustPacking(t, Readable, mustFields(t, medals...))
	if n := testing.AllocsPerRun(100, func() {
		packed, _ := p.Pack(Tuple{1, 2, 3})
		if back, err := p.Unpack(packed + p.Delta(Tuple{1})); err != nil || back != (Tuple{2, 2, 3}) {
			t.Errorf("%v, %v", back, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
