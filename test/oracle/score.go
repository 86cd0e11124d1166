package oracle

// Scores: the contract of both layouts, in integers and fractions of arbitrary size.

import (
	"fmt"
	"math"
	"math/big"
	"time"
)

// lengths are the constant lengths that layouts use.
var lengths = map[string]time.Duration{
	"daily":     36 * time.Hour,
	"weekly":    180 * time.Hour,
	"monthly":   756 * time.Hour,
	"quarterly": 2220 * time.Hour,
	"yearly":    8796 * time.Hour,
	"all-time":  (1 << 32) * time.Second,
}

// layout is how the scores of a period are encoded.
type layout struct {
	wide bool
	k    uint
	tick int64 // ms
	rule Board
	most *big.Int // the greatest packed tuple
	low  *big.Int // the least: 0, or -most if the only field is signed
}

func pow2(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// layoutOf uses as many bits of ticks as the range leaves, but no more than ticks of 1 ms need.
func (c Config) layoutOf(p Period, b Board) layout {
	l := layout{wide: p.Layout == "wide", rule: b, low: new(big.Int)}
	var err error
	if l.most, err = b.packed(l.wide, b.best()); err != nil {
		panic(err) // it is in range
	}
	if b.Fields[0].Signed {
		l.low.Neg(l.most)
	}
	ms := lengths[p.Name].Milliseconds()
	switch {
	case p.Every > 0:
		ms = p.Every
	case p.End > 0:
		ms = p.End - p.Start
	case p.Calendar != "":
		ms = lengths[p.Calendar].Milliseconds()
	}
	for l.k = 1; pow2(l.k).Cmp(big.NewInt(ms)) < 0 && l.fits(l.k+1); l.k++ {
	}
	per := new(big.Int).Add(big.NewInt(ms-1), pow2(l.k))
	l.tick = per.Div(per, pow2(l.k)).Int64()
	return l
}

// fits reports whether the range leaves k bits of ticks.
func (l layout) fits(k uint) bool {
	if !l.wide { // 53 bits in all
		return k < 53 && pow2(53-k).Cmp(l.most) > 0
	}
	codes := new(big.Int).Sub(l.most, l.low)
	codes.Add(codes, big.NewInt(1)).Lsh(codes, k)
	return codes.Cmp(new(big.Int).Sub(pow2(63), pow2(53))) <= 0
}

// ticks returns the number of whole ticks between a time and the window's last millisecond.
func (l layout) ticks(w *window, at int64) int64 { return (w.end - 1 - max(at, w.start)) / l.tick }

// score returns the bits of a member's score in a window.
func (l layout) score(w *window, s *standing) (uint64, error) {
	at := w.start
	if s.timed {
		at = s.time
	}
	packed, err := l.rule.packed(l.wide, s.values)
	if err != nil {
		return 0, err
	}
	ticks := l.ticks(w, at)
	code := new(big.Int).Set(packed)
	if l.wide {
		// The integer packed·2^k + ticks, with packed biased so that negatives sort correctly, as the bits of
		// a positive normal double.
		code.Sub(code, l.low)
		code.Lsh(code, l.k).Add(code, big.NewInt(ticks)).Add(code, pow2(52))
		return code.Uint64(), nil
	}
	code.Lsh(code, l.k).Add(code, big.NewInt(ticks))
	score, exact := new(big.Rat).SetFrac(code, pow2(l.k)).Float64()
	if !exact {
		return 0, fmt.Errorf("%v packed and %d ticks are no double", packed, ticks)
	}
	return math.Float64bits(score), nil
}
