package terminal

// Plain text for terminals.

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns a text that a terminal shows literally. It escapes invisible characters, and the backslash, so
// that two different texts never look the same.
func Plain(text string) string {
	first, last := len(text)-len(strings.TrimLeft(text, " ")), len(strings.TrimRight(text, " "))-1
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == ' ' && (i < first || i > last):
			b.WriteString(`\x20`)
		default:
			harmless(&b, text[i:], r)
		}
	}
	return b.String()
}

// Harmless escapes the invisible characters of a line, including line breaks, so that no part of it controls a
// terminal. It does not change a result of Plain, so it can be applied last, to a text of any origin.
func Harmless(line string) string {
	var b strings.Builder
	for i, r := range line {
		harmless(&b, line[i:], r)
	}
	return b.String()
}

// OneLine returns a text as one line that does not control a terminal.
func OneLine(text string) string { return Harmless(strings.ReplaceAll(text, "\n", " ")) }

// harmless writes r, the first character of rest.
func harmless(b *strings.Builder, rest string, r rune) {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)):
		fmt.Fprintf(b, `\x%02x`, rest[0])
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r < utf8.RuneSelf: // above it \x is an invalid byte
		fmt.Fprintf(b, `\x%02x`, r)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Write writes lines of text for people. All text output of commands goes through it, so that text from Kafka
// or Redis never controls a terminal.
func Write(w io.Writer, text string) error { return WriteColoured(w, text, nil, false) }
