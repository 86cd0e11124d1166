package terminal

// What reaches a terminal as plain text.

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain is a text that a terminal shows as it stands: what isn't visible is
// escaped, and so is the backslash, so that no two texts look the same for it.
func Plain(text string) string {
	first, last := 0, len(text)-1
	for first < len(text) && text[first] == ' ' {
		first++
	}
	for last >= 0 && text[last] == ' ' {
		last--
	}
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

// Harmless is a line of which a terminal acts on nothing: what isn't visible is escaped,
// a line break too. What Plain made stays as it is, so this can be done to anything in
// the end, wherever it came from.
func Harmless(line string) string {
	var b strings.Builder
	for i, r := range line {
		harmless(&b, line[i:], r)
	}
	return b.String()
}

// OneLine is a text in one line, of which a terminal acts on nothing.
func OneLine(text string) string { return Harmless(strings.ReplaceAll(text, "\n", " ")) }

// harmless writes r, with which rest begins.
func harmless(b *strings.Builder, rest string, r rune) {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)):
		fmt.Fprintf(b, `\x%02x`, rest[0])
	case unicode.IsPrint(r):
		b.WriteRune(r)
	case r < utf8.RuneSelf: // above it \x is a byte that is no text
		fmt.Fprintf(b, `\x%02x`, r)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Write writes lines of text for people: all of a command's text goes through it, so that
// nothing that others wrote into Kafka or Redis reaches a terminal raw.
func Write(w io.Writer, text string) error { return WriteColoured(w, text, nil) }
