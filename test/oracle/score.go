package oracle

// Scores: the contract of both layouts, in integers and fractions of any size.

import (
	"fmt"
	"math"
	"math/big"
	"time"
)

// lengths are the constants that layouts are made for.
var lengths = map[string]time.Duration{
	"daily":     36 * time.Hour,
	"weekly":    180 * time.Hour,
	"monthly":   756 * time.Hour,
	"quarterly": 2220 * time.Hour,
	"yearly":    8796 * time.Hour,
	"all-time":  (1 << 32) * time.Second,
}

// layout is how the scores of a period are laid out.
type layout struct {
	wide bool
	k    uint
	tick int64 // ms
	most int64 // points
}

func pow2(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// layoutOf takes as many bits of ticks as the range leaves, and no more than a tick of
// 1 ms can use.
func (c Config) layoutOf(p Period) layout {
	l := layout{wide: p.Layout == "wide", most: c.MaxPoints}
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
		return pow2(53-k).Cmp(big.NewInt(l.most)) > 0
	}
	codes := new(big.Int).Lsh(big.NewInt(2*l.most+1), k)
	return codes.Cmp(new(big.Int).Sub(pow2(63), pow2(53))) <= 0
}

// score is the bits of a member's score in a window.
func (l layout) score(w *window, s *sum) (uint64, error) {
	at := w.start
	if s.timed && s.time > at {
		at = s.time
	}
	if s.points > l.most || s.points < -l.most {
		return 0, fmt.Errorf("%d points leave ±%d: the records ought to overflow", s.points, l.most)
	}
	ticks := (w.end - 1 - at) / l.tick
	code := big.NewInt(s.points)
	if l.wide {
		// The integer points·2^k + ticks, with points biased so that negatives sort,
		// as the bits of a positive normal double.
		code.Add(code, big.NewInt(l.most))
		code.Lsh(code, l.k).Add(code, big.NewInt(ticks)).Add(code, pow2(52))
		return code.Uint64(), nil
	}
	code.Lsh(code, l.k).Add(code, big.NewInt(ticks))
	score, exact := new(big.Rat).SetFrac(code, pow2(l.k)).Float64()
	if !exact {
		return 0, fmt.Errorf("%d points and %d ticks are no double", s.points, ticks)
	}
	return math.Float64bits(score), nil
}
