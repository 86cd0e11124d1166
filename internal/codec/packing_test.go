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

	"github.com/stretchr/testify/require"
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
	require.NoError(t, err)
	return p
}

func mustPack(t rapid.TB, p Packing, values Tuple) int64 {
	t.Helper()
	packed, err := p.Pack(values)
	require.NoError(t, err)
	return packed
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
		if f.Turned(f.Turned(tuple)) != tuple {
			t.Fatalf("%v of %v turned twice is %v", tuple, f, f.Turned(f.Turned(tuple)))
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
		if back, err := p.Unpack(packed); err != nil || back != (Tuple{1, 2, 3}) {
			t.Errorf("%v, %v", back, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
