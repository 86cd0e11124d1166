package sample

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks from 1 to n, rank k as often as k^-s, with no table: by
// rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to
// generate variates from monotone discrete distributions", 1996). math/rand's
// takes only s above 1, and shops and clubs are often below.
//
// The area under x^-s from 0.5 to n+0.5 is cut at every k+0.5. A point of the
// area is drawn, and taken back to its x; it is kept if it lies in the last
// k^-s of its piece, so that each k is kept by exactly its share.
type zipf struct {
	n           int
	s           float64
	first, last float64 // the area's ends
	sure        float64 // this close below k, a point is always kept
}

func newZipf(n int, s float64) zipf {
	z := zipf{n: n, s: s}
	z.first = z.area(1.5) - 1
	z.last = z.area(float64(n) + 0.5)
	z.sure = 2 - z.inverse(z.area(2.5)-math.Pow(2, -s))
	return z
}

func (z *zipf) next(random *rand.Rand) int {
	if z.s == 0 {
		return 1 + random.IntN(z.n)
	}
	for {
		u := z.last + random.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(int(x+0.5), 1), z.n)
		if float64(k)-x <= z.sure || u >= z.area(float64(k)+0.5)-math.Pow(float64(k), -z.s) {
			return k
		}
	}
}

// area is the integral of x^-s from 1: (x^(1-s) - 1) / (1-s), or log x. Written
// with expm1, it is right at s = 1 and near it too.
func (z *zipf) area(x float64) float64 {
	l := math.Log(x)
	t := (1 - z.s) * l
	if math.Abs(t) < 1e-8 {
		return l * (1 + t/2)
	}
	return math.Expm1(t) / t * l
}

func (z *zipf) inverse(a float64) float64 {
	t := max(a*(1-z.s), -1) // rounding may take it past
	if math.Abs(t) < 1e-8 {
		return math.Exp(a * (1 - t/2))
	}
	return math.Exp(math.Log1p(t) / t * a)
}
