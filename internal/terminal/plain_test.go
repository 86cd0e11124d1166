package terminal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// nasty generates texts of parts that terminals, escapes or each other could misread.
func nasty() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			`\`, "x", "u", "U", "0", "1", "8", "e", " ", "\n", "\t", "\r", "\x1b", "\x1b[2J", "\x7f", "\x85", "\xff", "\xc2", "\u0085", "\u009b", "\u00a0",
			"\u00ad", "\u200f", "\u202e", "\ue000", "\ue0001", "\ufffd", "\ufeff", "\U000e0001", "\U0010ffff", "é", "e\u0301", "漢", "👩‍🚀",
		})).Draw(t, "parts"), "")
	})
}

// read returns the text from which Plain made this.
func read(t *rapid.T, plain string) string {
	var b strings.Builder
	for rest := plain; rest != ""; {
		escape, found := strings.CutPrefix(rest, `\`)
		if !found {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[escape[0]]
		if escape[0] == '\\' {
			b.WriteByte('\\')
		} else {
			n, err := strconv.ParseUint(escape[1:1+digits], 16, 32)
			switch {
			case err != nil:
				t.Fatalf("%q: %v", plain, err)
			case escape[0] == 'x':
				b.WriteByte(byte(n))
			default:
				b.WriteRune(rune(n))
			}
		}
		rest = escape[1+digits:]
	}
	return b.String()
}

func isShown(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func TestNoTwoTextsLookTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nasty().Draw(t, "text")
		plain := Plain(text)
		if back := read(t, plain); back != text || !isShown(plain) || strings.TrimSpace(plain) != plain {
			t.Errorf("%q is shown as %q, which reads %q", text, plain, back)
		}
	})
	for text, want := range map[string]string{
		"\U000e0001": `\U000e0001`, "\ue0001": `\ue0001`, "\x85": `\x85`, "\u0085": `\u0085`, "\x1b[2J": `\x1b[2J`, " a b ": `\x20a b\x20`, `\`: `\\`,
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestOfAHarmlessLineATerminalActsOnNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := nasty().Draw(t, "text")
		line := Harmless(text)
		if !isShown(line) || Harmless(line) != line {
			t.Errorf("%q is shown as %q", text, line)
		}
		if plain := Plain(text); Harmless(plain) != plain {
			t.Errorf("%q is escaped twice: %q", text, Harmless(plain))
		}
		if isShown(text) && line != text {
			t.Errorf("%q is shown as %q", text, line)
		}
	})
}

func TestACellIsOneLineWhateverIsInItAndAHeadingIsAsItIs(t *testing.T) {
	table := NewTable("WINDOW", "lb", "LB")
	table.Add("eu:weekly:\x1b]0;a\a\nforged", "1", "\x1b[2J")
	table.Add(Plain(`a\b`), "", "-")
	var b strings.Builder
	table.Write(&b)
	if want := `
WINDOW                        lb  LB
eu:weekly:\x1b]0;a\x07\x0aforged  1   \x1b[2J
a\\b                              -
`; normal(b.String()) != normal(want[1:]) || strings.Count(b.String(), "\n") != 3 {
		t.Errorf("got\n%s", &b)
	}
}

func normal(text string) string { return strings.Join(strings.Fields(text), " ") }

type full struct{ error }

func (w full) Write([]byte) (int, error) { return 0, w.error }

func TestTextIsWrittenInLinesThatAreHarmlessOrTheErrorReturned(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, "one\x1b[2J\n\ntwo\r\u202e\n"); err != nil || b.String() != "one\\x1b[2J\n\ntwo\\x0d\\u202e\n" {
		t.Errorf("%v: %q", err, &b)
	}
	noSpace := errors.New("no space left on device")
	if err := Write(full{fmt.Errorf("write /dev/full: %w", noSpace)}, "one\n"); !errors.Is(err, noSpace) {
		t.Errorf("%v", err)
	}
}
