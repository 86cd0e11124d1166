// The fields of a board: the numbers that make up a standing, most significant first.

package codec

import (
	"fmt"
	"strings"
)

// MaxFields is the maximum number of fields of a board.
const MaxFields = 5

// Tuple has a standing's numbers, or a change of them, in the order of its board's fields. The elements
// past the last field are 0.
type Tuple [MaxFields]int64

// Field is an integer that counts on a board.
type Field struct {
	Name   string // name in events and answers: [A-Za-z_][A-Za-z0-9_]{0,63}
	Max    int64  // the values are 0 to Max; at least 1
	Signed bool   // the values are within ±Max; only for a board's only field
	Fewest bool   // the smaller value is better
}

// String returns the field and its range: revives 0 to 99, fewest first.
func (f Field) String() string {
	text := fmt.Sprintf("%s 0 to %d", f.Name, f.Max)
	if f.Signed {
		text = fmt.Sprintf("%s within ±%d", f.Name, f.Max)
	}
	if f.Fewest {
		text += ", fewest first"
	}
	return text
}

// Holds reports whether a value is in the field's range.
func (f Field) Holds(value int64) bool {
	return value <= f.Max && (value >= 0 || f.Signed && value >= -f.Max)
}

// ranked returns a value's digit in a packed tuple: the better value has the greater digit. It is its own
// inverse.
func (f Field) ranked(value int64) int64 {
	switch {
	case !f.Fewest:
		return value
	case f.Signed:
		return -value
	}
	return f.Max - value
}

// Fields are the fields of a board. Only NewFields creates them; the zero Fields is empty.
type Fields struct {
	of [MaxFields]Field
	n  int
}

// NewFields checks the fields of a board, most significant first. There must be 1 to MaxFields, with
// distinct names, and each with a range of more than one value. Several fields must be unsigned.
// NewTupleLayout checks whether they fit a layout.
func NewFields(list ...Field) (Fields, error) {
	if len(list) == 0 || len(list) > MaxFields {
		return Fields{}, fmt.Errorf("%d fields: a board must have 1 to %d", len(list), MaxFields)
	}
	var f Fields
	f.n = copy(f.of[:], list)
	for i, field := range list {
		switch {
		case !named(field.Name):
			return Fields{}, fmt.Errorf("field %.40q: a name must have 1 to 64 letters, digits and underscores, and not start with a digit", field.Name)
		case field.Max < 1:
			return Fields{}, fmt.Errorf("field %s: max %d: must be at least 1", field.Name, field.Max)
		case field.Signed && len(list) > 1:
			return Fields{}, fmt.Errorf("field %s: only a board's single field can be signed", field.Name)
		case f.Index(field.Name) < i:
			return Fields{}, fmt.Errorf("field %s: duplicate name", field.Name)
		}
	}
	return f, nil
}

func named(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Len is the number of fields.
func (f Fields) Len() int { return f.n }

// At returns the field at index i of the tuple, from 0.
func (f Fields) At(i int) Field { return f.of[i] }

// List returns the fields, most significant first.
func (f Fields) List() []Field { return append([]Field(nil), f.of[:f.n]...) }

// Index returns the index of a field in the tuple, or -1.
func (f Fields) Index(name string) int {
	for i := range f.n {
		if f.of[i].Name == name {
			return i
		}
	}
	return -1
}

// Holds reports whether every value of the tuple is in its field's range.
func (f Fields) Holds(t Tuple) bool {
	for i := range f.n {
		if !f.of[i].Holds(t[i]) {
			return false
		}
	}
	return true
}

func (f Fields) String() string {
	parts := make([]string, f.n)
	for i := range parts {
		parts[i] = f.of[i].String()
	}
	return strings.Join(parts, "; ")
}

// withMax returns the fields with another max for one of them.
func (f Fields) withMax(i int, limit int64) Fields {
	f.of[i].Max = limit
	return f
}

// capped returns the fields with no max above limit.
func (f Fields) capped(limit int64) Fields {
	for i := range f.n {
		f.of[i].Max = min(f.of[i].Max, limit)
	}
	return f
}
