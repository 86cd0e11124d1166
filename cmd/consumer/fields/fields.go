// Package fields formats a standing's fields as text and as JSON.
package fields

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/units"
)

// Values holds the fields of a standing in the board's order. As JSON they are an object.
type Values struct {
	fields codec.Fields
	tuple  codec.Tuple
}

// Of returns the fields of a standing; nil on a board with the default rule, which has points instead.
func Of(f codec.Fields, t codec.Tuple) *Values {
	if f.Len() == 0 {
		return nil
	}
	return &Values{f, t}
}

// MarshalJSON writes an object with its keys in the order of the fields.
func (v *Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range v.fields.List() {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(strconv.Quote(f.Name) + ":" + strconv.FormatInt(v.tuple[i], 10)) // names contain only letters, digits and _
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// String returns the fields for people: stage 42, revives 3.
func (v *Values) String() string {
	texts := make([]string, v.fields.Len())
	for i, f := range v.fields.List() {
		texts[i] = f.Name + " " + units.Thousands(v.tuple[i])
	}
	return strings.Join(texts, ", ")
}

// Text returns a standing's fields, or its points on a board with the default rule.
func Text(f codec.Fields, t codec.Tuple, points int64) string {
	if v := Of(f, t); v != nil {
		return v.String()
	}
	return units.Thousands(points)
}
