// Packs a tuple into an integer, and back, so that the integers have the order of the tuples.

package codec

import (
	"fmt"
	"math"
	"math/bits"
)

// Packing is how one kind of layout packs a board's tuples into integers. Each field is a digit, the most
// significant first; the digit of a fewest field is its max less the value:
//
//	readable   in powers of ten   stage 42 of 999, revives 3 of 99, fewest first:
//	                              42·100 + (99-3) = 4296
//	wide       in mixed radix     each field's radix is its max + 1, so that no number
//	                              between is lost
//
// A single field is its own number, which may be negative if the field is signed. Only NewPacking creates a
// Packing.
type Packing struct {
	Fields Fields
	Kind   Kind
	Max    int64 // the largest packed tuple
	weight [MaxFields]int64
}

// NewPacking returns how a kind of layout packs the fields. If it can't hold them, the error is ErrRange;
// NewTupleLayout reports what would fit.
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
		// Here weight is at most limit·10, and the sum is below 2^53.
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

// largestPacked returns the largest number that a tuple may be packed into.
func largestPacked(kind Kind, fields Fields) int64 {
	if kind == Readable || fields.of[0].Signed {
		return widest
	}
	return widestUnsigned
}

// radix returns the number of digits of a field. Its max must be below 2^53.
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

// Min returns the smallest packed tuple: 0, or -Max if the single field is signed.
func (p *Packing) Min() int64 {
	if p.Fields.of[0].Signed {
		return -p.Max
	}
	return 0
}

// Weight returns what 1 in a field's digit adds to a packed tuple.
func (p *Packing) Weight(field int) int64 { return p.weight[field] }

// Radix returns the number of digits of a field. For the first field it is at least its max + 1.
func (p *Packing) Radix(field int) int64 { return int64(radix(p.Kind, p.Fields.of[field].Max)) }

// Pack packs a tuple. If a field is out of range, the error is ErrRange.
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

// Unpack returns the tuple that was packed. If no tuple is packed so, the error is ErrRange.
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

// turned returns the change of a value's digit. It is its own inverse.
func (f Field) turned(change int64) int64 {
	if f.Fewest {
		return -change
	}
	return change
}

// Digits converts a tuple to the digits of its packing, where greater is better. It is its own inverse.
func (f Fields) Digits(t Tuple) Tuple {
	for i := range f.n {
		t[i] = f.of[i].ranked(t[i])
	}
	return t
}

// Turned converts a change of a tuple to the change of its digits. It is its own inverse.
func (f Fields) Turned(change Tuple) Tuple {
	for i := range f.n {
		change[i] = f.of[i].turned(change[i])
	}
	return change
}

// Zero returns the packed tuple that a sum starts from: 0 in every field.
func (p *Packing) Zero() int64 {
	zero, err := p.Pack(Tuple{})
	if err != nil {
		return math.MinInt64 // unreachable: every field can be 0
	}
	return zero
}
