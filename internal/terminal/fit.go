package terminal

// Text in the lines of a screen.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Wrapped are the lines of a text, each broken between words where it is wider than the width;
// what was broken goes on below, indented. A word that is wider is cut.
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

// breakAt is as many words as fit a width, at least one, and what is left.
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

// Stack puts parts below each other, with an empty line between them if the height has room for
// these.
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

// Fit leaves as many lines as a height has, and says in the last one how many it lacks.
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
