package terminal

// Aligned text.

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Table is aligned text. A cell is one line, whatever is in it; what counts is how wide a
// terminal shows it.
type Table struct {
	// Right are the columns whose cells end in line.
	Right []bool
	cells [][]string
}

// NewTable is a table with a row of headings: in capitals, but for names.
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

// Gap is the columns between two of a table.
const Gap = 2

func (t *Table) widths() []int {
	widths := make([]int, len(t.Right))
	for _, row := range t.cells {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	return widths
}

// Narrow cuts a column's cells so that lines keep within a width, if that is
// enough to do it.
func (t *Table) Narrow(column, width int) {
	widths := t.widths()
	over := -width + Gap*(len(widths)-1)
	for _, w := range widths {
		over += w
	}
	room := widths[column] - over
	if over <= 0 || room < 8 {
		return
	}
	for _, row := range t.cells {
		row[column] = Cut(row[column], room)
	}
}

// Cut shortens a text to a width, and shows that it did.
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
				line += strings.Repeat(" ", Gap)
			}
			line += cell
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
