package terminal

// Aligned text.

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Table is aligned text. Every cell is one line. Its width is the width on a terminal.
type Table struct {
	// Right are the columns that are aligned to the right.
	Right []bool
	cells [][]string
}

// NewTable returns a table with a row of headings. Headings are in capitals, except names.
func NewTable(heads ...string) *Table {
	t := &Table{Right: make([]bool, len(heads))}
	t.Add(heads...)
	return t
}

// Add adds a row.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Harmless(cell)
	}
	t.cells = append(t.cells, row)
}

// gap is the number of columns between two columns of a table.
const gap = 2

func (t *Table) widths() []int {
	widths := make([]int, len(t.Right))
	for _, row := range t.cells {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	return widths
}

// Room returns the width that a column may have so that lines fit into width.
func (t *Table) Room(column, width int) int {
	for i, w := range t.widths() {
		if i != column {
			width -= w + gap
		}
	}
	return width
}

// Narrow cuts a column's cells so that lines fit into width, if that is enough.
func (t *Table) Narrow(column, width int) {
	if room := t.Room(column, width); room >= 2 {
		for _, row := range t.cells {
			row[column] = Cut(row[column], room)
		}
	}
}

// Wrap breaks a column's cells between words, into additional rows, so that lines fit into width, unless a word
// is longer.
func (t *Table) Wrap(column, width int) {
	room := t.Room(column, width)
	var rows [][]string
	for _, row := range t.cells {
		rows = append(rows, row)
		line := ""
		for word := range strings.FieldsSeq(row[column]) {
			if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > room {
				row[column], line = line, ""
				row = make([]string, len(row))
				rows = append(rows, row)
			}
			line = strings.TrimSpace(line + " " + word)
		}
		row[column] = line
	}
	t.cells = rows
}

// Cut shortens a text to a width, and marks the cut with an ellipsis.
func Cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	kept, rest, state := 0, text, -1
	for used := 0; ; {
		var w int
		_, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += w; used > width-1 {
			return text[:kept] + "…"
		}
		kept = len(text) - len(rest)
	}
}

// Write writes the lines.
func (t *Table) Write(s *strings.Builder) {
	widths := t.widths()
	for _, row := range t.cells {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
			if t.Right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			if i > 0 {
				line += strings.Repeat(" ", gap)
			}
			line += cell
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
