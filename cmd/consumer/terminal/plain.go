package terminal

// What reaches a terminal as plain text.

import (
	"fmt"
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
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\\':
			b.WriteString(`\\`)
		case r == ' ' && (i < first || i > last):
			b.WriteString(`\x20`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
