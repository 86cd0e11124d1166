// Package boardview lays out a board as text: a title, and a row for each standing. Every line is plain
// text: invisible characters in ids and names are escaped.
package boardview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Title names a board and its window, with as much detail as fits in width columns; a width of 0 is
// unlimited.
func Title(b *ranking.Board, zone *time.Location, width int) string {
	const minute = "2006-01-02 15:04"
	short := fmt.Sprintf("%s %s %s", b.Name, b.Window.Period, b.Window.Name)
	members := units.Plural(b.Members, "member")
	start, end := time.UnixMilli(b.Window.Start).In(zone), time.UnixMilli(b.Window.End).In(zone)
	for _, title := range []string{
		fmt.Sprintf("%s  [%s, %s) %s  %s", short, start.Format(minute), end.Format(minute), zone, members),
		short + "  " + members,
		short,
		fmt.Sprintf("%s %s", b.Name, b.Window.Period),
	} {
		if width == 0 || len(title) <= width {
			return title
		}
	}
	return terminal.Cut(b.Name, width)
}

// Layout describes how rows are laid out.
type Layout struct {
	Width    int  // in columns; 0 is unlimited
	Headings bool // whether a line of headings comes first
	Zone     *time.Location
	Mark     func(ranking.Standing) string // shown before the rank: next to the id it could look like a part of it
	Coloured bool                          // whether arrows are green and red
}

// leastMember is the minimum width of the member column, in columns. If less is left, times are omitted
// first, then names.
const leastMember = 12

// Rows returns the rows of a board. If they are wider than the width, it omits times, then names, and then
// cuts member ids.
func (l *Layout) Rows(b *ranking.Board) []string {
	named := slices.ContainsFunc(b.Standings, func(st ranking.Standing) bool { return st.Name != "" })
	t := l.table(b, named, true)
	if l.Width > 0 {
		for _, named := range []bool{named, false} {
			if t.Room(memberColumn, l.Width) >= leastMember {
				break
			}
			t = l.table(b, named, false)
		}
		t.Narrow(memberColumn, l.Width)
	}
	lines := t.Lines()
	for i, line := range lines {
		if l.Width > 0 {
			line = terminal.Cut(line, l.Width)
		}
		lines[i] = l.coloured(line)
	}
	if !l.Headings {
		lines = lines[1:]
	}
	return lines
}

const (
	memberColumn = 1
	widestName   = 24
)

func (l *Layout) table(b *ranking.Board, named, timed bool) *terminal.Table {
	fields := b.Fields.List()
	heads, right := []string{"RANK", "MEMBER"}, []bool{true, false}
	if named {
		heads, right = append(heads, "NAME"), append(right, false)
	}
	if len(fields) == 0 {
		heads, right = append(heads, "POINTS"), append(right, true)
	}
	for _, f := range fields {
		heads, right = append(heads, strings.ToUpper(f.Name)), append(right, true)
	}
	if timed {
		heads, right = append(heads, "REACHED AT"), append(right, false)
	}
	if !l.Headings {
		heads = make([]string, len(right))
	}
	t := terminal.NewTable(heads...)
	t.Right = right
	for _, st := range b.Standings {
		tuple := st.Tuple[:len(fields)]
		if len(fields) == 0 {
			tuple = []int64{st.Points}
		}
		values := slices.Repeat([]string{"-"}, len(tuple))
		rank, reached := "-", "-"
		if st.Rank > 0 {
			rank, reached = units.Thousands(st.Rank), st.ReachedAt.In(l.Zone).Format(TimeForm(b.Tick))
			for i, n := range tuple {
				values[i] = units.Thousands(n)
			}
		}
		row := []string{l.Mark(st) + rank, terminal.Plain(st.Member)}
		if named {
			name := terminal.Plain(st.Name)
			if l.Width > 0 {
				name = terminal.Cut(name, widestName)
			}
			row = append(row, name)
		}
		row = append(row, values...)
		if timed {
			row = append(row, reached)
		}
		t.Add(row...)
	}
	return t
}

// coloured returns a row with its arrow in colour. The arrow comes before all text that others chose, so
// such text cannot be mistaken for it.
func (l *Layout) coloured(line string) string {
	row := strings.TrimLeft(line, " ")
	for arrow, colour := range map[string]terminal.Colour{climbed: terminal.Green, fell: terminal.Red} {
		if rest, ok := strings.CutPrefix(row, arrow); ok {
			return line[:len(line)-len(row)] + colour.In(arrow, l.Coloured) + rest
		}
	}
	return line
}

// Beside arranges columns of lines side by side, each padded to width, with gap spaces between them.
func Beside(columns [][]string, width, gap int) []string {
	height := 0
	for _, column := range columns {
		height = max(height, len(column))
	}
	lines := make([]string, height)
	for i := range lines {
		for j, column := range columns {
			cell := ""
			if i < len(column) {
				cell = column[i]
			}
			if j < len(columns)-1 {
				cell += strings.Repeat(" ", max(0, width+gap-uniseg.StringWidth(terminal.Unstyled(cell))))
			}
			lines[i] += cell
		}
	}
	return lines
}

// TimeForm returns the format for a time that is known to the tick.
func TimeForm(tick time.Duration) string {
	switch {
	case tick <= time.Millisecond:
		return "2006-01-02 15:04:05.000"
	case tick <= 10*time.Millisecond:
		return "2006-01-02 15:04:05.00"
	case tick <= 100*time.Millisecond:
		return "2006-01-02 15:04:05.0"
	case tick < time.Minute:
		return time.DateTime
	}
	return "2006-01-02 15:04"
}
