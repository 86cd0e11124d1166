package terminal

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func TestWrappedTextIsAllThereAndNoWiderThanAllowedUnlessAWordIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab 漢é")), 0, 80, -1).Draw(t, "text")
		width := rapid.IntRange(2, 30).Draw(t, "width")
		table := NewTable("", "")
		table.Add("ab", text)
		table.Wrap(1, width)
		var out strings.Builder
		table.Write(&out)
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSpace(strings.TrimPrefix(line, "ab"))
			if uniseg.StringWidth(line) > width-2-len(gap) && strings.Contains(line, " ") {
				t.Fatalf("%q of %q in %d", line, text, width)
			}
		}
		got, _ := strings.CutPrefix(strings.Join(strings.Fields(out.String()), " "), "ab")
		if want := strings.Join(strings.Fields(text), " "); strings.TrimSpace(got) != want {
			t.Fatalf("%q became %q", want, got)
		}
	})
}
