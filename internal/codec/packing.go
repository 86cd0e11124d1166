// A tuple to one whole number, and back, so that the order of the numbers is the order of
// the tuples.

package codec

import (
	"fmt"
	"math"
	"math/bits"
)

// Packing is how a board's tuples are packed into whole numbers, by one kind of layout. Each
// field is a digit, the most significant first, and fewest counts down from its max:
//
//	readable   in powers of ten   stage 42 of 999, revives 3 of 99, fewest first:
//	                              42·100 + (99-3) = 4296
//	wide       in mixed radix     each field's radix is its max + 1, so that no number
//	                              between is lost
//
// A single field is its own number, below 0 too if it is signed. Only NewPacking makes one.
type Packing struct {
	Fields Fields
	Kind   Kind
	Max    int64 // the largest packed tuple
	weight [MaxFields]int64
}

// NewPacking works out how fields are packed by a kind of layout. ErrRange says that they
// take more than it can hold: NewTupleLayout says what would fit.
func NewPacking(kind Kind, fields Fields) (Packing, error) {
	p, ok := pack(kind, fields)
	if !ok {
		return Packing{}, fmt.Errorf("pack %v as %s: %w", fields, kind, ErrRange)
	}
	return p, nil
}

func pack(kind Kind, fields Fields) (p Packing, ok bool) {
	limit := largestPacked(kind, fields)
	p = Packing{Fields: fields, Kind: kind}
	weight := uint64(1)
	for i := fields.n - 1; i >= 0; i-- {
		// Up to here weight is at most limit·10, and the sum below 2^53.
		p.weight[i] = int64(weight)
		high, top := bits.Mul64(weight, uint64(fields.of[i].Max))
		if high != 0 || top > uint64(limit-p.Max) {
			return Packing{}, false
		}
		p.Max += int64(top)
		weight *= radix(kind, fields.of[i].Max)
	}
	return p, fields.n > 0
}

// largestPacked is the largest number that a tuple may be packed into.
func largestPacked(kind Kind, fields Fields) int64 {
	if kind == Readable || fields.of[0].Signed {
		return widest
	}
	return widestUnsigned
}

// radix is how many digits there are for a field. Its max is below 2^53.
func radix(kind Kind, limit int64) uint64 {
	if kind != Readable {
		return uint64(limit) + 1
	}
	n := uint64(10)
	for n <= uint64(limit) {
		n *= 10
	}
	return n
}

// Min is the smallest packed tuple: 0, or -Max where the single field is signed.
func (p *Packing) Min() int64 {
	if p.Fields.of[0].Signed {
		return -p.Max
	}
	return 0
}

// Weight is what one more in the digit of a field adds to a packed tuple.
func (p *Packing) Weight(field int) int64 { return p.weight[field] }

// Radix is how many digits there are for a field; the first field's is its max + 1, or more.
func (p *Packing) Radix(field int) int64 { return int64(radix(p.Kind, p.Fields.of[field].Max)) }

// Pack packs a tuple. A field out of its range is ErrRange.
func (p *Packing) Pack(t Tuple) (int64, error) {
	var packed int64
	for i := range p.Fields.n {
		f := &p.Fields.of[i]
		if !f.Holds(t[i]) {
			return 0, fmt.Errorf("pack %d as %v: %w", t[i], f, ErrRange)
		}
		packed += f.ranked(t[i]) * p.weight[i]
	}
	return packed, nil
}

// Unpack returns the tuple that Pack packed. ErrRange says that there is none.
func (p *Packing) Unpack(packed int64) (Tuple, error) {
	t, ok := p.unpack(packed)
	if !ok {
		return Tuple{}, fmt.Errorf("unpack %d as %v: %w", packed, p.Fields, ErrRange)
	}
	return t, nil
}

func (p *Packing) unpack(packed int64) (t Tuple, ok bool) {
	if packed < p.Min() || packed > p.Max {
		return Tuple{}, false
	}
	last := p.Fields.n - 1
	for i := range last {
		digit := packed / p.weight[i]
		packed -= digit * p.weight[i]
		f := &p.Fields.of[i]
		if digit > f.Max {
			return Tuple{}, false
		}
		t[i] = f.ranked(digit)
	}
	f := &p.Fields.of[last]
	t[last] = f.ranked(packed)
	return t, packed <= f.Max
}

// Delta is what a change of the tuple adds to it when it is packed:
//
//	Pack(t + change) = Pack(t) + Delta(change)
//
// where t + change is in range. Its sign is the sign of the first field that changes, turned
// round where fewest counts, as long as no field changes by more than its max.
//
// It doesn't say by how much each field changes: with two fields from 0 to 9 (+1, -1) and
// (0, +9) both are 9. So a sum of packed changes can't be checked field by field, and what
// adds them up has to have the fields (rules.Rule's changes do).
func (p *Packing) Delta(change Tuple) int64 {
	var delta int64
	for i := range p.Fields.n {
		delta += p.Fields.of[i].turned(change[i]) * p.weight[i]
	}
	return delta
}

// turned is what a change of the value changes its digit by. It is its own inverse.
func (f Field) turned(change int64) int64 {
	if f.Fewest {
		return -change
	}
	return change
}

// Digits is a tuple as the digits that packing has for it, the better the greater. Values
// and digits turn into each other: Digits of digits is the tuple.
func (f Fields) Digits(t Tuple) Tuple {
	for i := range f.n {
		t[i] = f.of[i].ranked(t[i])
	}
	return t
}

// Turned is a change of a tuple as the change of its digits, and the other way round.
func (f Fields) Turned(change Tuple) Tuple {
	for i := range f.n {
		change[i] = f.of[i].turned(change[i])
	}
	return change
}

// Zero is the tuple that a sum begins with: 0 in every field.
func (p *Packing) Zero() int64 {
	zero, err := p.Pack(Tuple{})
	if err != nil {
		return math.MinInt64 // every field has 0
	}
	return zero
}
