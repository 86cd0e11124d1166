// Package safejson makes JSON safe to show. A string in JSON may contain control characters above ASCII
// and characters that change the direction of text. A terminal acts on them, and a reader sees another
// text. This package writes them as escapes, which every JSON parser reads as the same text.
package safejson

import (
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns JSON in which every character that can't be seen is an escape. It returns text itself
// if text has no such character.
func Escape(text []byte) []byte {
	first := slices.IndexFunc(text, func(b byte) bool { return b >= utf8.RuneSelf || b == del })
	if first < 0 {
		return text
	}
	escaped := append(make([]byte, 0, len(text)+16), text[:first]...)
	for rest := text[first:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r < del, unicode.IsPrint(r), r == utf8.RuneError: // below ASCII's end JSON itself has escapes
			escaped = append(escaped, rest[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return escaped
}

// del is the control character at ASCII's end.
const del = 0x7f

// NewWriter writes what Escape returns of each text that is written to it. No character may be divided
// between two writes: an encoder of JSON writes whole values.
func NewWriter(to io.Writer) io.Writer { return writer{to} }

type writer struct{ to io.Writer }

// Write writes a text, and returns the number of its bytes before they were escaped.
func (w writer) Write(text []byte) (int, error) {
	if _, err := w.to.Write(Escape(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
