package check

// Check as text: a table a section, its cells wrapped to a width.

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/terminal"
)

// The width of lines: as wide as the terminal within these, else the default.
const (
	checkNarrowest = 80
	checkWidest    = 120
	checkWidth     = 100
)

// writeCheck writes lines of at most width columns, unless a word is longer.
func writeCheck(w io.Writer, r *checkReport, width int) error {
	var b strings.Builder
	rows := mergeSubjects(r.Findings)
	name := len("CHECK")
	for _, row := range rows {
		name = max(name, uniseg.StringWidth(row.name()))
	}
	name = min(name, width/4)
	result := uniseg.StringWidth(string(outcomeUnchecked))
	rest := width - name - result - 3*terminal.Gap
	l := checkLayout{[4]int{name, result, (rest + 1) / 2, rest / 2}}

	l.line(&b, [4]string{"CHECK", "RESULT", "FOUND", "WHAT TO DO"})
	section := ""
	for _, row := range rows {
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(section[:1])+section[1:])
		}
		l.row(&b, row)
	}
	fmt.Fprintf(&b, "\n%s: %s\n", r.conclusion(), r.count())
	return terminal.Write(w, b.String())
}

// conclusion says what it comes to for whoever is about to start a consumer.
func (r *checkReport) conclusion() string {
	if r.Result == outcomeWrong {
		return "The consumer wouldn't work like this"
	}
	return "The consumer would work"
}

// name is what the first column shows.
func (f finding) name() string {
	if f.Subject == "" {
		return f.Check
	}
	return terminal.Plain(f.Subject) + ": " + f.Check
}

// mergeSubjects makes one of findings that follow each other and differ only in what
// they are about.
func mergeSubjects(all []finding) []finding {
	var merged []finding
	for _, f := range all {
		same := false
		for i := range merged {
			m := &merged[i]
			if f.Subject != "" && m.Section == f.Section && m.Check == f.Check && m.Result == f.Result && m.Found == f.Found && m.ToDo == f.ToDo {
				m.Subject += ", " + f.Subject
				same = true
				break
			}
		}
		if !same {
			merged = append(merged, f)
		}
	}
	return merged
}

// checkLayout is the width of each column.
type checkLayout struct{ widths [4]int }

// row wraps a finding's cells. Where there is nothing to do, what was found has the
// room.
func (l checkLayout) row(b *strings.Builder, f finding) {
	found := l.widths[2]
	if f.ToDo == "" {
		found += terminal.Gap + l.widths[3]
	}
	cells := [4][]string{wrap(f.name(), l.widths[0]), {string(f.Result)}, wrap(terminal.Plain(f.Found), found), wrap(terminal.Plain(f.ToDo), l.widths[3])}
	for i := range max(len(cells[0]), len(cells[2]), len(cells[3])) {
		var line [4]string
		for c := range cells {
			if i < len(cells[c]) {
				line[c] = cells[c][i]
			}
		}
		l.line(b, line)
	}
}

func (l checkLayout) line(b *strings.Builder, cells [4]string) {
	line := ""
	for i, cell := range cells {
		if i > 0 {
			line += strings.Repeat(" ", terminal.Gap)
		}
		line += cell + strings.Repeat(" ", max(0, l.widths[i]-uniseg.StringWidth(cell)))
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// wrap breaks a text between words into lines of at most width columns. A word that
// is longer is broken where it has to be.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		w := uniseg.StringWidth(word)
		if line != "" && used+1+w > width {
			lines, line, used = append(lines, line), "", 0
		}
		for w > width {
			head := breakAt(word, width)
			lines = append(lines, head)
			word = word[len(head):]
			w = uniseg.StringWidth(word)
		}
		if line != "" {
			line += " "
			used++
		}
		line += word
		used += w
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// breakAt is as much of a word as fits, and at least one character of it.
func breakAt(word string, width int) string {
	kept, rest, state := 0, word, -1
	for used := 0; rest != ""; {
		var w int
		_, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += w; used > width && kept > 0 {
			break
		}
		kept = len(word) - len(rest)
	}
	return word[:kept]
}
