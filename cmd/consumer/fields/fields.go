// Package fields is a standing's fields as text and as JSON.
package fields

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/units"
)

// Values are the fields of a standing, in the order of their board. As JSON they are an object.
type Values struct {
	fields codec.Fields
	tuple  codec.Tuple
}

// Of are a standing's fields, nil on a board by the default rule, which has points.
func Of(f codec.Fields, t codec.Tuple) *Values {
	if f.Len() == 0 {
		return nil
	}
	return &Values{f, t}
}

// MarshalJSON writes an object whose keys are in the order of the fields.
func (v *Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range v.fields.List() {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(strconv.Quote(f.Name) + ":" + strconv.FormatInt(v.tuple[i], 10)) // a name is letters, digits and _
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// String is as people read it: stage 42, revives 3.
func (v *Values) String() string {
	texts := make([]string, v.fields.Len())
	for i, f := range v.fields.List() {
		texts[i] = f.Name + " " + units.Thousands(v.tuple[i])
	}
	return strings.Join(texts, ", ")
}

// Text is a standing's fields, or its points on a board by the default rule.
func Text(f codec.Fields, t codec.Tuple, points int64) string {
	if v := Of(f, t); v != nil {
		return v.String()
	}
	return units.Thousands(points)
}
