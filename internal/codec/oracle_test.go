// The design's formulas in exact arithmetic, with integers and fractions of any size.

package codec

import (
	"math"
	"math/big"

	"pgregory.net/rapid"
)

func pow2(n int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }

// bigLayout increases k from 1 while the scores fit and a tick is longer than 1 ms.
func bigLayout(kind Kind, length, limit int64) (k int, tick int64) {
	for k = 1; pow2(k).Cmp(big.NewInt(length)) < 0 && bigFits(kind, k+1, limit); k++ {
	}
	n := new(big.Int).Add(big.NewInt(length), pow2(k))
	n.Sub(n, big.NewInt(1)).Div(n, pow2(k))
	return k, n.Int64()
}

func bigFits(kind Kind, k int, limit int64) bool {
	n := big.NewInt(limit)
	if kind == Readable {
		// The largest score, in ticks, is one less than this; doubles represent all integers up to 2^53.
		n.Add(n, big.NewInt(1)).Mul(n, pow2(k))
		return n.Cmp(pow2(53)) <= 0
	}
	n.Mul(n, big.NewInt(2)).Add(n, big.NewInt(1)).Mul(n, pow2(k))
	return n.Cmp(new(big.Int).Sub(pow2(63), pow2(53))) <= 0
}

func bigEncode(t rapid.TB, l Layout, points, ticks int64) uint64 {
	t.Helper()
	if l.Kind == Readable {
		r := new(big.Rat).SetFrac(big.NewInt(ticks), pow2(l.K))
		r.Add(r, new(big.Rat).SetInt64(points))
		f, exact := r.Float64()
		if !exact {
			t.Fatalf("%v: %v isn't a double", l, r)
		}
		return math.Float64bits(f)
	}
	n := new(big.Int).Add(big.NewInt(points), big.NewInt(l.Max))
	n.Mul(n, pow2(l.K)).Add(n, big.NewInt(ticks)).Add(n, pow2(52))
	if !n.IsUint64() {
		t.Fatalf("%v: %v isn't 64 bits", l, n)
	}
	return n.Uint64()
}

// bigDecode reports whether bits are a score of the layout, and returns its points and ticks.
func bigDecode(l Layout, bits uint64) (points, ticks int64, ok bool) {
	n := new(big.Int)
	if l.Kind == Readable {
		r := new(big.Rat).SetFloat64(math.Float64frombits(bits))
		if r == nil {
			return 0, 0, false
		}
		r.Mul(r, new(big.Rat).SetInt(pow2(l.K)))
		if !r.IsInt() {
			return 0, 0, false
		}
		n.Set(r.Num()).Add(n, new(big.Int).Mul(big.NewInt(l.Max), pow2(l.K)))
	} else {
		exponent := bits >> 52 // with the sign bit
		if exponent == 0 || exponent >= 0x7ff {
			return 0, 0, false
		}
		n.SetUint64(bits).Sub(n, pow2(52))
	}
	// Here both kinds have (points+max)·2^k + ticks.
	p, m := new(big.Int).DivMod(n, pow2(l.K), new(big.Int))
	if p.Sign() < 0 || p.Cmp(big.NewInt(2*l.Max)) > 0 {
		return 0, 0, false
	}
	return p.Int64() - l.Max, m.Int64(), true
}

// bigTicks returns the ticks of a time, and the first time with these ticks; -1 and nil for a time that
// isn't before end.
func bigTicks(start, end, at, tick int64) (int64, *int64) {
	if at < start {
		at = start
	}
	if at >= end {
		return -1, nil
	}
	n := new(big.Int).Sub(big.NewInt(end), big.NewInt(at))
	n.Sub(n, big.NewInt(1)).Div(n, big.NewInt(tick))
	first := new(big.Int).Sub(big.NewInt(end-tick), new(big.Int).Mul(n, big.NewInt(tick))).Int64()
	if first < start {
		first = start
	}
	return n.Int64(), &first
}
