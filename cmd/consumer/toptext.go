package main

// A board as text. What a member is called comes from whoever publishes events,
// so nothing of it reaches a terminal that isn't plain text.

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// boardText writes boards for people.
type boardText struct {
	out    io.Writer
	zone   *time.Location
	width  int    // columns to keep within; 0 for any
	marked string // a member whose row is pointed at
}

func newBoardText(out io.Writer, zone string) *boardText {
	t := &boardText{out: out, zone: time.UTC}
	if z, err := time.LoadLocation(zone); err == nil {
		t.zone = z
	}
	t.width, _ = terminal(out)
	return t
}

// write writes a header line, the rows, and what is to be known about them. None
// is what is said where there are no rows.
func (t *boardText) write(b ranking.Board, none string) error {
	var s strings.Builder
	t.header(&s, b)
	if len(b.Standings) > 0 {
		s.WriteByte('\n')
		t.rows(&s, b)
	}
	for _, note := range append(notes(b), none) {
		if note != "" {
			s.WriteString("\n" + note + "\n")
		}
	}
	_, err := io.WriteString(t.out, s.String())
	return err
}

func (t *boardText) header(s *strings.Builder, b ranking.Board) {
	const minute = "2006-01-02 15:04"
	start, end := time.UnixMilli(b.Window.Start).In(t.zone), time.UnixMilli(b.Window.End).In(t.zone)
	fmt.Fprintf(s, "%s %s %s  [%s, %s) %s  %s\n", b.Name, b.Window.Period, b.Window.Name,
		start.Format(minute), end.Format(minute), t.zone, plural(b.Members, "member"))
}

func (t *boardText) rows(s *strings.Builder, b ranking.Board) {
	form := timeForm(b.Tick)
	table := newTable("rank", "member", "points", "reached at")
	table.right[0], table.right[2] = true, true
	for _, st := range b.Standings {
		mark := ""
		if t.marked != "" && st.Member == t.marked && len(b.Standings) > 1 {
			mark = "> " // before the rank: in the member's column it could be part of an id
		}
		if st.Rank == 0 {
			table.add("-", plain(st.Member), "-", "-")
			continue
		}
		table.add(mark+units.Thousands(st.Rank), plain(st.Member), units.Thousands(st.Points), st.ReachedAt.In(t.zone).Format(form))
	}
	if t.width > 0 {
		table.narrow(1, t.width)
	}
	table.write(s)
}

// notes are what a reader would otherwise take for granted.
func notes(b ranking.Board) []string {
	var all []string
	if len(b.Incomplete) > 0 {
		all = append(all, "incomplete: this window began before the first event that was read of "+strings.Join(b.Incomplete, ", "))
	}
	if !b.Listed {
		all = append(all, "nothing has been counted in this window, or its retention is over")
	}
	return all
}

// timeForm is how exactly a time is written that is known to the tick.
func timeForm(tick time.Duration) string {
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

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return units.Thousands(n) + " " + what + "s"
}

// plain is a text that a terminal shows as it stands: what isn't visible is
// escaped, and so is the backslash, so that no two texts look the same for it.
func plain(text string) string {
	first, last := 0, len(text)-1
	for first < len(text) && text[first] == ' ' {
		first++
	}
	for last >= 0 && text[last] == ' ' {
		last--
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\\':
			b.WriteString(`\\`)
		case r == ' ' && (i < first || i > last):
			b.WriteString(`\x20`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// table is aligned text. Its cells are plain; what counts is how wide a terminal
// shows them.
type table struct {
	right []bool // columns whose cells end in line
	cells [][]string
}

func newTable(heads ...string) *table {
	for i, h := range heads {
		heads[i] = strings.ToUpper(h)
	}
	return &table{right: make([]bool, len(heads)), cells: [][]string{heads}}
}

func (t *table) add(cells ...string) { t.cells = append(t.cells, cells) }

const tableGap = 2

func (t *table) widths() []int {
	widths := make([]int, len(t.right))
	for _, row := range t.cells {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	return widths
}

// narrow cuts a column's cells so that lines keep within a width, if that is
// enough to do it.
func (t *table) narrow(column, width int) {
	widths := t.widths()
	over := -width + tableGap*(len(widths)-1)
	for _, w := range widths {
		over += w
	}
	room := widths[column] - over
	if over <= 0 || room < 8 {
		return
	}
	for _, row := range t.cells {
		row[column] = cut(row[column], room)
	}
}

// cut shortens a text to a width, and shows that it did.
func cut(text string, width int) string {
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

func (t *table) write(s *strings.Builder) {
	widths := t.widths()
	for _, row := range t.cells {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
			if t.right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			if i > 0 {
				line += strings.Repeat(" ", tableGap)
			}
			line += cell
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
