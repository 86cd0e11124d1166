package check

// This file writes the report as text: a table of findings, section by section.

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/terminal"
)

// The line width in columns: the terminal's width within these limits, or usualWidth without a terminal.
const (
	narrowest  = 80
	widest     = 120
	usualWidth = 100
)

var colours = map[string]terminal.Colour{
	string(outcomeOK): terminal.Green, string(outcomeUnchecked): terminal.Yellow, string(outcomeWarning): terminal.Yellow, "warnings": terminal.Yellow, string(outcomeWrong): terminal.Red,
}

// write writes lines of at most width columns, unless a single word is longer.
func (r *checkReport) write(w io.Writer, width int, coloured bool) error {
	t := terminal.NewTable("CHECK", "RESULT", "FOUND → WHAT TO DO")
	section := ""
	for _, f := range mergeSubjects(r.Findings) {
		if f.Section != section {
			section = f.Section
			t.Add("", "", "")
			t.Add(strings.ToUpper(section[:1])+section[1:], "", "")
		}
		text := terminal.Plain(f.Found)
		if f.Subject != "" {
			text = terminal.Plain(f.Subject) + ": " + text
		}
		if f.ToDo != "" {
			text += " → " + terminal.Plain(f.ToDo)
		}
		t.Add(f.Check, string(f.Result), text)
	}
	t.Wrap(2, width)
	var b strings.Builder
	t.Write(&b)
	if lines := shards.Lines(r.Shards); len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
	conclusion := "The consumer would work"
	if r.Result == outcomeWrong {
		conclusion = "The consumer wouldn't work like this"
	}
	fmt.Fprintf(&b, "\n%s: %s\n", conclusion, r.count())
	return terminal.WriteColoured(w, b.String(), colours, coloured)
}

// mergeSubjects merges findings that differ only in their subject.
func mergeSubjects(all []finding) []finding {
	var merged []finding
	for _, f := range all {
		subject := f.Subject
		f.Subject = ""
		i := slices.IndexFunc(merged, func(m finding) bool { m.Subject = ""; return subject != "" && m == f })
		if i >= 0 && merged[i].Subject != "" {
			merged[i].Subject += ", " + subject
			continue
		}
		f.Subject = subject
		merged = append(merged, f)
	}
	return merged
}
