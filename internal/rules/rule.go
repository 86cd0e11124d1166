// Package rules is how the events of a member come to one tuple in a window: by a board's
// fields, and by one of three ways to merge them. It is pure: no clock, no state.
//
//	score   the standing's fields                its time
//	sum     each field's sum over the events     the latest of the events that raised it;
//	                                             without one the window's start
//	best    the greatest tuple of an event       the earliest event that had it
//	last    the tuple of the latest event, of    that
//	        several within a tick the greatest
//
// All three are functions of the set of events: merging is commutative and associative
// (best and last idempotent, too), so no order, cut or replay can change what comes out.
// The exception is a sum past the range of its fields: there, what is refused depends on
// the order.
//
//	event ─ Rule.Value ─▶ Value ─ Rule.Merge ─▶ Value ─ Rule.Digits ─▶ script ─▶ score
//	        (fields, time)        (one number and one time a member)
//
// The number is one int64 whatever the fields, so that what folds events keeps as much for a
// member of five fields as for one with points alone.
package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Score is how the events of a member are merged.
type Score string

const (
	// Sum adds each field up.
	Sum Score = "sum"
	// Best keeps the greatest tuple as a whole, and when it came first.
	Best Score = "best"
	// Last keeps the tuple of the latest time.
	Last Score = "last"
)

// Scores lists the ways there are, the default first.
func Scores() []Score { return []Score{Sum, Best, Last} }

// Rule is a board's fields, and how a member's events come to one tuple. Only New makes one.
type Rule struct {
	Score  Score
	Fields codec.Fields
	// packing packs the tuples of best and last in mixed radix, the denser of the two ways:
	// whatever fits a layout fits it. A layout that packs otherwise gets the digits.
	packing codec.Packing
	// A change of a sum of several fields is packed so that each field's change can be told:
	// a digit has all values within ±max.
	several bool
	// A sum of one field, as the default rule is, is added as it is: sign is 1, or -1 where
	// fewest counts. 0 for the others.
	sign   int64
	weight codec.Tuple // of its digits
	limit  codec.Tuple // the fields' max
	n      int         // fields
}

// Default is the rule of a board that has none of its own: points within ±maxPoints, summed.
func Default(maxPoints int64) (Rule, error) {
	fields, err := codec.NewFields(codec.Field{Name: "points", Max: maxPoints, Signed: true})
	if err != nil {
		return Rule{}, err
	}
	return New(Sum, fields)
}

// New makes the rule of some fields. Fields that no layout has room for are codec.ErrRange;
// which of them a period's layout has room for is for codec.NewTupleLayout to say.
func New(score Score, fields codec.Fields) (Rule, error) {
	if !slices.Contains(Scores(), score) {
		return Rule{}, fmt.Errorf("score %.40q must be one of %s", score, names(Scores()))
	}
	packing, err := codec.NewPacking(codec.Wide, fields)
	if err != nil {
		return Rule{}, fmt.Errorf("score %s: %w", score, err)
	}
	r := Rule{Score: score, Fields: fields, packing: packing, several: score == Sum && fields.Len() > 1, n: fields.Len()}
	if score == Sum && !r.several {
		r.sign = fields.Turned(codec.Tuple{1})[0]
	}
	// The fields' radices come to at most 2^53, so these to 2^5 times that.
	weight := int64(1)
	for i := r.n - 1; i >= 0; i-- {
		r.weight[i], r.limit[i] = weight, fields.At(i).Max
		weight *= 2*r.limit[i] + 1
	}
	return r, nil
}

func names[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// Value is what some events of a member come to on a board.
type Value struct {
	// Packed is the tuple, of a sum the change, as one number of the rule's own: greater is
	// better, and 0 is no change. It isn't what a score has (Digits is the way there). Beyond
	// is a sum that no standing has room for.
	Packed int64
	// Time is in Unix milliseconds. NoTime where no event raised the sum: then the window's
	// start counts.
	Time int64
}

const (
	// Beyond is a change past the range of its fields. It stays so, whatever is added.
	Beyond = math.MaxInt64
	// NoTime lies before every window's start, and counts as that start.
	NoTime = math.MinInt64
)

// Takes finds the first field whose value an event can't have: -1 if there is none. A sum
// takes changes of -max to +max of each field, best and last take the field's values.
func (r *Rule) Takes(values *codec.Tuple) int {
	for i := range r.n {
		low := int64(0)
		if r.Score == Sum || r.packing.Min() < 0 {
			low = -r.limit[i]
		}
		if values[i] < low || values[i] > r.limit[i] {
			return i
		}
	}
	return -1
}

// Value is the value of one event with values that Takes takes, at a time in Unix
// milliseconds.
func (r *Rule) Value(values *codec.Tuple, time int64) Value {
	if r.sign == 0 {
		return r.value(values, time)
	}
	packed := values[0] * r.sign
	if packed <= 0 {
		time = NoTime
	}
	return Value{packed, time}
}

// value is Value where it takes more than a sign.
func (r *Rule) value(values *codec.Tuple, time int64) Value {
	if r.Score != Sum {
		packed := int64(0)
		digits := r.Fields.Digits(*values)
		for i := range r.n {
			packed += digits[i] * r.packing.Weight(i)
		}
		return Value{packed, time}
	}
	packed := int64(0)
	for i, digit := range r.Fields.Turned(*values) {
		packed += digit * r.weight[i]
	}
	if packed <= 0 {
		time = NoTime
	}
	return Value{packed, time}
}

// Merge is the value of two sets of events together.
//
// For last, times are told apart by ticks: both have to be cut to the tick of the window
// (Cut), so that a value belongs to one window. The values of sum and best are the same for
// all windows, however long their ticks.
func (r *Rule) Merge(a, b Value) Value {
	if r.sign != 0 {
		return Value{add(a.Packed, b.Packed), max(a.Time, b.Time)}
	}
	return r.merge(a, b)
}

// merge is Merge where it takes more than an addition.
func (r *Rule) merge(a, b Value) Value {
	switch r.Score {
	case Best:
		return best(a, b)
	case Last:
		return last(a, b)
	}
	return Value{r.add(a.Packed, b.Packed), max(a.Time, b.Time)}
}

func best(a, b Value) Value {
	if a.Packed > b.Packed || a.Packed == b.Packed && a.Time <= b.Time {
		return a
	}
	return b
}

func last(a, b Value) Value {
	if a.Time > b.Time || a.Time == b.Time && a.Packed >= b.Packed {
		return a
	}
	return b
}

// add adds changes of one field: its range is far from that of an int64, so a sum that
// leaves the latter is beyond the former, and one that leaves the former may come back.
func add(a, b int64) int64 {
	s := a + b
	if a == Beyond || b == Beyond || (a^s)&(b^s) < 0 {
		return Beyond
	}
	return s
}

// add adds changes of several fields. One that leaves ±max in a field is beyond: no standing
// has room for it, and its digit has none either.
func (r *Rule) add(a, b int64) int64 {
	if a == Beyond || b == Beyond {
		return Beyond
	}
	if a == 0 || b == 0 {
		return a + b
	}
	x, y := r.split(a), r.split(b)
	for i := range r.n {
		x[i] += y[i]
		if x[i] > r.limit[i] || x[i] < -r.limit[i] {
			return Beyond
		}
	}
	return a + b // packing is linear
}

// split is the digits of a packed change: each within ±max, so what is left of one is the
// number that lies nearest.
func (r *Rule) split(packed int64) (digits codec.Tuple) {
	for i := range r.n {
		half := r.weight[i] / 2 // the greatest that the digits below come to
		d := packed + half
		n := d / r.weight[i]
		if d%r.weight[i] < 0 {
			n--
		}
		digits[i] = n
		packed -= n * r.weight[i]
	}
	return digits
}

// Digits are what the script that writes scores gets of a value: a digit for each field, the
// greater the better. For best and last they are the tuple's (a signed field's may be
// negative), for a sum how much each changes. ok is false for a change beyond the range of
// its fields, which the script must refuse.
func (r *Rule) Digits(packed int64) (digits codec.Tuple, ok bool) {
	switch {
	case r.Score != Sum:
		t, err := r.packing.Unpack(packed)
		return r.Fields.Digits(t), err == nil
	case packed == Beyond:
		return codec.Tuple{}, false
	case r.several:
		return r.split(packed), true
	}
	return codec.Tuple{packed}, true
}

// Values are a value's fields as events have them: of best and last the tuple, of a sum how
// much each changes. ok is as for Digits.
func (r *Rule) Values(packed int64) (values codec.Tuple, ok bool) {
	digits, ok := r.Digits(packed)
	switch {
	case !ok:
		return codec.Tuple{}, false
	case r.Score == Sum:
		return r.Fields.Turned(digits), true
	}
	return r.Fields.Digits(digits), true
}

// Cut is the first millisecond of a time's tick in the window [start, end), all in Unix
// milliseconds, though not before start: what Merge takes for last. It is
// codec.Layout.Time of codec.Layout.Ticks.
func Cut(start, end, tick, at int64) int64 {
	at = max(at, start)
	ticks := int64(uint64(end-1-at) / uint64(tick))
	return max(start, end-(ticks+1)*tick)
}

// Falls reports whether an event may have a value below 0 for a field: of a sum it is a
// change, of best and last a signed field's value.
func (r *Rule) Falls(field int) bool { return r.Score == Sum || r.Fields.At(field).Signed }
