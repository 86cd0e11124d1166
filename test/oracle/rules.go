package oracle

// Rules: the fields that a board counts, and how a member's events result in one standing, as specified in
// docs/rules.md. The default rule is the sum of points.

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// AnyBoard is the key of the rule for boards that are not listed.
const AnyBoard = "*"

// Board is a board's rule. The zero Board has the default rule.
type Board struct {
	Score   string   // sum, best or last; empty: sum
	Fields  []Field  // most significant first; empty: points, within ±MaxPoints
	Periods []string // names; empty: all
}

// Field is an integer from 0 to Max, or within ±Max.
type Field struct {
	Name   string
	Max    int64
	Signed bool
	Fewest bool // smaller is better
}

// mostFields is the maximum number of fields of a board.
const mostFields = 5

// tuple has a value for each field of a board.
type tuple [mostFields]int64

// rule returns a board's rule with all defaults filled in.
func (c Config) rule(name string) Board {
	b, named := c.Rules[name]
	if !named {
		b = c.Rules[AnyBoard]
	}
	if b.Score == "" {
		b.Score = "sum"
	}
	if len(b.Fields) == 0 {
		b.Fields = []Field{{Name: "points", Max: c.MaxPoints, Signed: true}}
	}
	return b
}

func (c Config) byDefault(b Board) bool {
	return b.Score == "sum" && len(b.Fields) == 1 && b.Fields[0] == Field{Name: "points", Max: c.MaxPoints, Signed: true}
}

// ruled reports whether any board has another rule than the default.
func (c Config) ruled() bool {
	for name := range c.Rules {
		if !c.byDefault(c.rule(name)) {
			return true
		}
	}
	return false
}

// has reports whether a board has windows of a period.
func (b Board) has(period string) bool {
	return len(b.Periods) == 0 || slices.Contains(b.Periods, period)
}

// text returns the rule as the listing names it.
func (b Board) text() string {
	var fields []string
	for _, f := range b.Fields {
		text := fmt.Sprintf("%s:%d", f.Name, f.Max)
		if f.Signed {
			text += ":signed"
		}
		if f.Fewest {
			text += ":fewest"
		}
		fields = append(fields, text)
	}
	return b.Score + "(" + strings.Join(fields, ",") + ")"
}

// takes reports whether an event may have a value for a field. For a sum, the value is a change.
func (b Board) takes(f Field, value int64) bool {
	if b.Score == "sum" || f.Signed {
		return -f.Max <= value && value <= f.Max
	}
	return 0 <= value && value <= f.Max
}

// compare returns 1 if one is better than other, -1 if it is worse, and 0 if they are equal.
func (b Board) compare(one, other tuple) int {
	for i, f := range b.Fields {
		if one[i] != other[i] {
			if (one[i] > other[i]) != f.Fewest {
				return 1
			}
			return -1
		}
	}
	return 0
}

// standing is a member's standing in a window.
type standing struct {
	values tuple
	time   int64
	timed  bool // time counts; for a sum, only the time of an event that increased it
	there  bool // there was an event
}

// take counts an event.
func (s *standing) take(b Board, l layout, w *window, values tuple, at int64) {
	now := standing{values, at, true, true}
	switch b.Score {
	case "sum":
		for i := range values {
			s.values[i] += values[i]
		}
		if b.compare(values, tuple{}) > 0 && (!s.timed || at > s.time) {
			s.time, s.timed = at, true
		}
		s.there = true
	case "best":
		better := b.compare(values, s.values)
		if !s.there || better > 0 || better == 0 && at < s.time {
			*s = now
		}
	case "last":
		// A later time has fewer ticks left in the window.
		left, before := l.ticks(w, at), int64(0)
		if s.there {
			before = l.ticks(w, s.time)
		}
		if !s.there || left < before || left == before && b.compare(values, s.values) > 0 {
			*s = now
		}
	default:
		panic("oracle: no such score: " + b.Score)
	}
}

// packed returns the integer that represents a tuple in a score: adjacent decimal digits in readable, mixed radix in
// wide. A Fewest field is counted down from its maximum.
func (b Board) packed(wide bool, values tuple) (*big.Int, error) {
	packed := new(big.Int)
	for i, f := range b.Fields {
		low, digit := int64(0), values[i]
		if f.Signed {
			low = -f.Max
		}
		if digit < low || digit > f.Max {
			return nil, fmt.Errorf("%s is %d, outside of %d to %d: the records ought to overflow", f.Name, digit, low, f.Max)
		}
		if f.Fewest {
			digit = low + f.Max - digit
		}
		radix := big.NewInt(f.Max + 1)
		if !wide {
			radix.Exp(big.NewInt(10), big.NewInt(int64(len(fmt.Sprint(f.Max)))), nil)
		}
		packed.Mul(packed, radix).Add(packed, big.NewInt(digit))
	}
	return packed, nil
}

// best returns the best possible tuple.
func (b Board) best() (t tuple) {
	for i, f := range b.Fields {
		if !f.Fewest {
			t[i] = f.Max
		} else if f.Signed {
			t[i] = -f.Max
		}
	}
	return t
}
