package event

// The messages about bad values: one line that fits a header and a log, whatever bytes the value has.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxShown is the maximum number of bytes of a value in a message.
const maxShown = 48

var kinds = map[jsontext.Kind]string{
	jsontext.KindNull:       "null",
	jsontext.KindFalse:      "a boolean",
	jsontext.KindTrue:       "a boolean",
	jsontext.KindString:     "a string",
	jsontext.KindNumber:     "a number",
	jsontext.KindBeginArray: "a list: each event needs a record of its own",
	jsontext.KindEndArray:   "a closing bracket",
	jsontext.KindEndObject:  "a closing brace",
}

// foreign returns what a value starts with, if it is recognisably not the JSON of an event.
func foreign(value []byte) string {
	switch {
	case len(value) == 0 || value[0] == '{':
		return ""
	case value[0] == 0 && len(value) >= 5: // a zero byte, and the schema's id in four bytes
		return fmt.Sprintf("the value is framed by a schema registry (schema %d), and must be JSON alone", binary.BigEndian.Uint32(value[1:]))
	case bytes.HasPrefix(value, []byte("\ufeff")):
		return "the value begins with a byte order mark, and must begin with its JSON"
	case bytes.HasPrefix(value, []byte("\xff\xfe")), bytes.HasPrefix(value, []byte("\xfe\xff")):
		return "the value is UTF-16 by its byte order mark, and must be UTF-8"
	}
	return ""
}

// noNumber describes the fault of a JSON value that should be a number.
func noNumber(raw []byte) string {
	if quotedNumber(raw) {
		return "is a number in quotes"
	}
	return "is not a number"
}

// quotedNumber reports whether a JSON value is a number in quotes.
func quotedNumber(raw []byte) bool {
	if len(raw) < 3 || raw[0] != '"' {
		return false
	}
	text := bytes.TrimPrefix(raw[1:len(raw)-1], []byte("-"))
	return len(bytes.Trim(text, "0123456789.")) == 0 && bytes.ContainsAny(text, "0123456789")
}

// malformed adds to the message that the fault is in the decoded data of a CloudEvent, if so.
func (d *Decoder) malformed(format string, args ...any) *Bad {
	if d.decoded {
		format = "the decoded data: " + format
	}
	return &Bad{Malformed, fmt.Sprintf(format, args...)}
}

func (d *Decoder) missing(reason Reason, f field) *Bad {
	return &Bad{reason, d.fields.labels[f] + " is missing"}
}

// wrong describes a field's fault, with the position and the start of its value.
func (d *Decoder) wrong(reason Reason, f field, what string) *Bad {
	return d.wrongAt(reason, d.fields.labels[f], d.at[f], what)
}

func (d *Decoder) wrongAt(reason Reason, label string, s span, what string) *Bad {
	in := ""
	if d.decoded {
		in = " of the decoded data"
	}
	return &Bad{reason, fmt.Sprintf("%s at byte %d%s %s: %s", label, s.start, in, what, shown(d.raw(s)))}
}

// noObject reports a field as missing because a value on its path is not an object.
func (d *Decoder) noObject(reason Reason, f field) *Bad {
	return d.wrongAt(reason, d.fields.name(f)+" is missing: "+d.barred[f].label, d.at[f], "is not an object")
}

// notJSON reports where a value stops being JSON. The text of the library's error contains at most two escape
// sequences of the value.
func (d *Decoder) notJSON(err error) *Bad {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return d.malformed("the value is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return d.malformed("the JSON ends midway, at byte %d", len(d.value))
	case errors.As(err, &syntax):
		return d.malformed("not JSON at byte %d: %s", syntax.ByteOffset, printable([]byte(syntax.Err.Error()), 128))
	}
	return d.malformed("not JSON: %s", printable([]byte(err.Error()), 128))
}

// shown returns the start of a JSON text.
func shown(raw []byte) string {
	return printable(raw, maxShown)
}

// printable returns at most limit bytes of text, in whole characters. It escapes characters that cannot be
// printed.
func printable(text []byte, limit int) string {
	out := make([]byte, 0, limit+len("…"))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		var char []byte
		if strconv.IsPrint(r) {
			char = text[i : i+size]
		} else {
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			char = quoted[1 : len(quoted)-1]
		}
		if len(out)+len(char) > limit {
			return string(append(out, "…"...))
		}
		out = append(out, char...)
		i += size
	}
	return string(out)
}
