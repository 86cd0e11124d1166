// Package rules combines a member's events in a window into one tuple, by a board's fields and one of three
// ways to merge them. It is pure: it has no clock and no state.
//
//	score   the standing's fields                its time
//	sum     each field's sum over the events     the latest of the events that raised it;
//	                                             without one the window's start
//	best    the greatest tuple of an event       the earliest event that had it
//	last    the tuple of the latest event, of    that
//	        several within a tick the greatest
//
// All three are functions of the set of events. Merging is commutative and associative, for best and last
// also idempotent, so the result doesn't depend on the order, the batches or a replay. The exception is a
// sum that leaves the range of its fields: then the order decides which events are refused.
//
//	event ─ Rule.Value ─▶ Value ─ Rule.Merge ─▶ Value ─ Rule.Digits ─▶ script ─▶ score
//	        (fields, time)        (one number and one time a member)
//
// The number is one int64 for any fields, so the code that folds events stores the same amount for a member
// with five fields as for one with only points.
package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/codec"
)

// Score is the way in which a member's events are merged.
type Score string

const (
	// Sum adds up each field.
	Sum Score = "sum"
	// Best keeps the greatest tuple, and its earliest time.
	Best Score = "best"
	// Last keeps the tuple with the latest time.
	Last Score = "last"
)

// Scores returns all ways, the default first.
func Scores() []Score { return []Score{Sum, Best, Last} }

// Rule is a board's fields, and how a member's events combine into one tuple. Only New creates it.
type Rule struct {
	Score  Score
	Fields codec.Fields
	// packing packs the tuples of best and last in mixed radix, the denser of the two ways: it can pack all
	// fields that fit a layout. A layout that packs in the other way uses the digits.
	packing codec.Packing
	// several is set for a sum of several fields. Its changes are packed so that each field's change can be
	// unpacked: a digit has all values within ±max.
	several bool
	// sign is set for a sum of one field, like the default rule, whose changes are added unpacked: 1, or -1
	// for a fewest field. It is 0 for other rules.
	sign   int64
	weight codec.Tuple // of the digits of several
	limit  codec.Tuple // the fields' max
	n      int         // fields
}

// Default returns the rule of boards without their own rule: points within ±maxPoints, summed.
func Default(maxPoints int64) (Rule, error) {
	fields, err := codec.NewFields(codec.Field{Name: "points", Max: maxPoints, Signed: true})
	if err != nil {
		return Rule{}, err
	}
	return New(Sum, fields)
}

// New returns the rule with the given fields. If no layout has room for them, the error is codec.ErrRange.
// codec.NewTupleLayout checks whether a period's layout has room.
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
	// The product of the fields' radices is at most 2^53, so that of these radices is at most 2^5 times as
	// large.
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

// Value is the combination of some of a member's events on a board.
type Value struct {
	// Packed is the tuple as one number of the rule; for a sum it is the change of the tuple. Greater is
	// better, and 0 is no change. A score has another number (see Digits). Beyond is a sum that no standing
	// has room for.
	Packed int64
	// Time is in Unix ms. It is NoTime if no event raised the sum; then the window's start counts.
	Time int64
}

const (
	// Beyond is a change past the range of its fields. It stays Beyond, whatever is added.
	Beyond = math.MaxInt64
	// NoTime is before every window's start, and counts as that start.
	NoTime = math.MinInt64
)

// Takes returns the index of the first field whose value an event can't have, or -1. A sum accepts changes
// of -max to +max of each field; best and last accept the field's values.
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

// Value returns the value of one event with values that Takes accepts, at a time in Unix ms.
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

// value is Value for all rules but a sum of one field.
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

// Merge returns the combination of two values.
//
// Last compares times by ticks, so both must be cut to the tick of the window (Cut): a value then belongs
// to one window. The values of sum and best are the same for all windows, whatever their ticks.
func (r *Rule) Merge(a, b Value) Value {
	if r.sign != 0 {
		return Value{add(a.Packed, b.Packed), max(a.Time, b.Time)}
	}
	return r.merge(a, b)
}

// merge is Merge for all rules but a sum of one field.
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

// add adds changes of one field. The range of a field is much smaller than that of an int64. So a sum that
// overflows an int64 is Beyond, and a sum that only leaves the field's range may return to it.
func add(a, b int64) int64 {
	s := a + b
	if a == Beyond || b == Beyond || (a^s)&(b^s) < 0 {
		return Beyond
	}
	return s
}

// add adds changes of several fields. If a field leaves ±max, the result is Beyond: no standing has room
// for it, nor does its digit.
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

// split returns the digits of a packed change. Each digit is within ±max, so it is found by rounding to the
// nearest number.
func (r *Rule) split(packed int64) (digits codec.Tuple) {
	for i := range r.n {
		half := r.weight[i] / 2 // the largest number that the lower digits can have
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

// Digits returns a value's digits as the script that writes scores expects them: one for each field, where
// greater is better. For best and last they are the tuple's digits (a signed field's digit may be
// negative), for a sum the changes of the digits. ok is false for a change beyond the range of its fields,
// which the script must refuse.
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

// Values returns a value's fields as events have them: for best and last the tuple, for a sum the change of
// each field. ok is as in Digits.
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

// Cut returns the first millisecond of a time's tick in the window [start, end), but not before start; all
// times are Unix ms. Merge needs such times for last. The result is that of codec.Layout.Time for
// codec.Layout.Ticks.
func Cut(start, end, tick, at int64) int64 {
	at = max(at, start)
	ticks := int64(uint64(end-1-at) / uint64(tick))
	return max(start, end-(ticks+1)*tick)
}

// Falls reports whether an event may have a negative value for a field: a sum's change, or a value of a
// signed field.
func (r *Rule) Falls(field int) bool { return r.Score == Sum || r.Fields.At(field).Signed }
