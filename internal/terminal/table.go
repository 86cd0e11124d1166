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

// gap is between two columns of a table.
const gap = "  "

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
			width -= w + len(gap)
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
		rest := strings.Join(strings.Fields(row[column]), " ")
		for {
			row[column], rest = breakAt(rest, room)
			rows = append(rows, row)
			if rest == "" {
				break
			}
			row = make([]string, len(row))
		}
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

// Lines returns the lines.
func (t *Table) Lines() []string {
	widths := t.widths()
	lines := make([]string, len(t.cells))
	for i, row := range t.cells {
		padded := make([]string, len(row))
		for j, cell := range row {
			pad := strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell))
			if t.Right[j] {
				cell = pad + cell
			} else {
				cell += pad
			}
			padded[j] = cell
		}
		lines[i] = strings.TrimRight(strings.Join(padded, gap), " ")
	}
	return lines
}

// Write writes the lines.
func (t *Table) Write(s *strings.Builder) { s.WriteString(strings.Join(t.Lines(), "\n") + "\n") }
