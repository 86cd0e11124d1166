// Tuples and time in one score: a packing, and a layout for the packed tuples.

package codec

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"
)

// TupleLayout is how scores hold a board's tuples and a period's time: the packed tuple takes the place of
// a Layout's points. Only NewTupleLayout creates it.
//
//	readable   score = packed + ticks/2^k
//	wide       bits  = 2^52 + packed·2^k + ticks, packed above the least
type TupleLayout struct {
	Packing Packing
	K       int   // bits of ticks, 1 to 44
	Tick    int64 // duration of a tick in ms; at least 1
}

// NewTupleLayout returns the layout of a board's fields for windows of at most length. It uses as many bits
// of ticks as the fields leave, but no more than a tick of 1 ms needs. For a single signed field the result
// is like that of New. If the fields don't fit, the error is ErrRange and says what would fit.
func NewTupleLayout(kind Kind, length time.Duration, fields Fields) (TupleLayout, error) {
	ms, err := checked(kind, length)
	if err != nil {
		return TupleLayout{}, err
	}
	l, ok := tupleLayout(kind, ms, fields)
	if !ok {
		return TupleLayout{}, fmt.Errorf("layout %s: %v: %w: %s", kind, fields, ErrRange, wouldFit(kind, ms, length, fields))
	}
	return l, nil
}

// OfPoints returns the layout as a TupleLayout with one field, points within ±Max. The scores are the same.
func (l Layout) OfPoints() TupleLayout {
	fields, err := NewFields(Field{Name: "points", Max: l.Max, Signed: true})
	if err != nil {
		return TupleLayout{} // l was not created by New
	}
	packing, _ := pack(l.Kind, fields)
	return TupleLayout{packing, l.K, l.Tick}
}

func tupleLayout(kind Kind, ms int64, fields Fields) (l TupleLayout, ok bool) {
	packing, ok := pack(kind, fields)
	if !ok {
		return TupleLayout{}, false
	}
	k := min(room(kind, packing.Max, packing.Min()), bitsFor(ms))
	return TupleLayout{packing, k, ceilDiv(ms, 1<<k)}, true
}

// wouldFit describes what would fit: a smaller max of the largest field, a smaller max of all fields, or
// the other layout.
func wouldFit(kind Kind, ms int64, length time.Duration, fields Fields) string {
	if fields.n == 0 {
		return fmt.Sprintf("1 to %d fields fit", MaxFields)
	}
	largest := 0
	for i := range fields.n {
		if fields.of[i].Max > fields.of[largest].Max {
			largest = i
		}
	}
	var fits []string
	one := func(limit int64) Fields { return fields.withMax(largest, limit) }
	all := func(limit int64) Fields { return fields.capped(limit) }
	most := largestMax(kind, ms, false, one)
	if most > 0 {
		text := fmt.Sprintf("max %d of %s fits", most, fields.of[largest].Name)
		if fine := largestMax(kind, ms, true, one); fine > 0 && fine < most {
			text += fmt.Sprintf(", and up to %d keeps the tick of a %v window within a second", fine, length)
		}
		fits = append(fits, text)
	}
	if every := largestMax(kind, ms, false, all); every != most {
		text := fmt.Sprintf("max %d of every field fits", every)
		if fine := largestMax(kind, ms, true, all); fine > 0 {
			text += fmt.Sprintf(" (%d within a second)", fine)
		}
		fits = append(fits, text)
	}
	if kind == Readable {
		if l, ok := tupleLayout(Wide, ms, fields); ok {
			fits = append(fits, fmt.Sprintf("layout wide holds them as they are, with a tick of %v", time.Duration(l.Tick)*time.Millisecond))
		}
	}
	return strings.Join(fits, "; or ")
}

// largestMax returns the largest max for which the fields fit, and if fine is set with a tick of at most a
// second; 0 if none does.
func largestMax(kind Kind, ms int64, fine bool, fields func(limit int64) Fields) int64 {
	return int64(sort.Search(widestUnsigned, func(limit int) bool {
		l, ok := tupleLayout(kind, ms, fields(int64(limit)+1))
		return !ok || fine && l.Coarse()
	}))
}

// Encode returns the score of a tuple and ticks (0 to 2^K-1). If they are out of range, the error is
// ErrRange.
func (l TupleLayout) Encode(t Tuple, ticks int64) (float64, error) {
	packed, err := l.Packing.Pack(t)
	if err != nil {
		return 0, err
	}
	if ticks < 0 || ticks >= 1<<l.K {
		return 0, fmt.Errorf("encode %d ticks as %v: %w", ticks, l, ErrRange)
	}
	if l.Packing.Kind == Readable {
		return readableScore(packed, l.K, ticks), nil
	}
	return wideScore(packed-l.Packing.Min(), l.K, ticks), nil
}

// Decode returns the tuple and ticks of a score that Encode returned. For any other score the error is
// ErrScore, also for a readable score with a digit above its field's max.
func (l TupleLayout) Decode(score float64) (t Tuple, ticks int64, err error) {
	var code, packed int64
	ok := true
	if l.Packing.Kind == Readable {
		code, ok = readableCode(score, l.K)
		packed = code >> l.K // rounds down, also below zero
	} else {
		code = wideCode(score)
		packed = code>>l.K + l.Packing.Min()
	}
	if ok {
		t, ok = l.Packing.unpack(packed)
	}
	if !ok {
		return Tuple{}, 0, fmt.Errorf("decode score %v (bits %016x) as %v: %w", score, math.Float64bits(score), l, ErrScore)
	}
	return t, code & (1<<l.K - 1), nil
}

// Bounds returns the range [low, high) of the scores of a tuple. low is the score with ticks 0, the latest
// time. high is the score of the next packed number with ticks 0, whether or not that number is a packed
// tuple. For readable high is low + 1. For wide it is the next double after the score with the most ticks;
// after the largest double it is +Inf. If the tuple is out of range, the error is ErrRange.
func (l TupleLayout) Bounds(t Tuple) (low, high float64, err error) {
	if low, err = l.Encode(t, 0); err != nil {
		return 0, 0, err
	}
	if l.Packing.Kind == Readable {
		return low, low + 1, nil
	}
	return low, math.Float64frombits(math.Float64bits(low) + 1<<l.K), nil
}

// layout returns a Layout for the time of the scores.
func (l TupleLayout) layout() Layout {
	return Layout{Kind: l.Packing.Kind, K: l.K, Tick: l.Tick, Max: l.Packing.Max}
}

// Coarse is like Layout.Coarse.
func (l TupleLayout) Coarse() bool { return l.layout().Coarse() }

// Ticks is like Layout.Ticks.
func (l TupleLayout) Ticks(start, end, at int64) int64 { return l.layout().Ticks(start, end, at) }

// Time is like Layout.Time.
func (l TupleLayout) Time(start, end, ticks int64) int64 { return l.layout().Time(start, end, ticks) }

// String describes the layout: readable: k 30, tick 1ms, stage 0 to 999; revives 0 to 99, fewest first;
// packed 0 to 99999.
func (l TupleLayout) String() string {
	p := &l.Packing
	text := fmt.Sprintf("%s: k %d, tick %v, %v", p.Kind, l.K, time.Duration(l.Tick)*time.Millisecond, p.Fields)
	if p.Fields.n > 1 {
		text += fmt.Sprintf("; packed 0 to %d", p.Max)
	}
	return text
}
