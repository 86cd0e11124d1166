package terminal

// Fitting text to the lines of a screen.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Wrapped returns the lines of a text. It breaks a line that is wider than width between words, and indents the
// continuation lines. It cuts a word that is wider.
func Wrapped(text string, width int) []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line = Harmless(line)
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		rest := strings.TrimLeft(line, " ")
		for first := true; first || rest != ""; first = false {
			if !first {
				indent += strings.Repeat(" ", max(0, wrapIndent-len(indent)))
			}
			var piece string
			piece, rest = breakAt(rest, width-len(indent))
			all = append(all, Cut(indent+piece, width))
		}
	}
	return all
}

const wrapIndent = 2

// breakAt returns as many words as fit into width, at least one, and the rest.
func breakAt(text string, width int) (piece, rest string) {
	end := 0
	for at := 0; at <= len(text); at++ {
		if at < len(text) && text[at] != ' ' {
			continue
		}
		if end > 0 && uniseg.StringWidth(text[:at]) > width {
			break
		}
		end = at
	}
	return text[:end], strings.TrimLeft(text[end:], " ")
}

// Stack joins parts vertically, with an empty line between them if height has room for all of these.
func Stack(parts [][]string, width, height int) []string {
	var spaced []string
	for _, part := range parts {
		if len(part) > 0 && len(spaced) > 0 {
			spaced = append(spaced, "")
		}
		spaced = append(spaced, part...)
	}
	if len(spaced) <= height {
		return spaced
	}
	return Fit(slices.Concat(parts...), width, height)
}

// Fit returns at most height lines. If it drops lines, the last line states how many.
func Fit(lines []string, width, height int) []string {
	if len(lines) <= height {
		return lines
	}
	if height < 2 {
		return lines[:height]
	}
	left := len(lines) - height + 1
	return append(lines[:height-1:height-1], Cut(fmt.Sprintf("… %d more lines", left), width))
}
