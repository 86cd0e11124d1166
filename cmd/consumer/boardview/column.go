// Package boardview draws boards as they move: a board as a column, with who has climbed and
// who has fallen. Every line is plain text, whatever members are called, with styles of its own.
package boardview

import (
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// Column is a board to be drawn.
type Column struct {
	Board *ranking.Board
	// Moved is by how many ranks a member has climbed lately, negative for fallen.
	Moved    func(ranking.Standing) int64
	Coloured bool           // arrows, green and red
	Zone     *time.Location // of the times that a Table shows
}

// Titled is a title and rows below it, all exactly as wide as the width, for columns side by side.
func (c *Column) Titled(rows, width int) []string {
	w := c.widths(2)
	w.member = max(1, width-w.rank-len(" ^ ")-len(" ")-w.result)
	cells := []string{terminal.Styled(terminal.Bold, pad(terminal.Cut(title(c.Board, width), width), width))}
	for i := range rows {
		if i < len(c.Board.Standings) {
			cells = append(cells, c.row(&w, &c.Board.Standings[i], width))
		} else {
			cells = append(cells, strings.Repeat(" ", width))
		}
	}
	return cells
}

// Table is headings and rows below them, as wide as they need and never wider than the width. It
// has what Titled has no room for: names, and when points were reached.
func (c *Column) Table(rows, width int) []string {
	heads := parts{rank: "RANK", member: "MEMBER", name: "NAME", result: strings.ToUpper(fieldNames(c.Board)), reached: "REACHED AT"}
	if c.Board.Fields.Len() == 0 {
		heads.result = "POINTS"
	}
	w := c.widths(len(heads.rank))
	w.result = len(" ") + max(w.result, len(heads.result))
	member, name := len(heads.member), 0
	for i := range c.Board.Standings {
		st := &c.Board.Standings[i]
		member = max(member, uniseg.StringWidth(terminal.Plain(st.Member)))
		if st.Name != "" {
			name = max(name, len(heads.name), uniseg.StringWidth(terminal.Plain(st.Name)))
		}
	}
	w.fit(width, member, name, len(TimeForm(c.Board.Tick)))
	lines := []string{terminal.Styled(terminal.Bold, terminal.Cut(w.line(&heads, " ", ""), width))}
	for i := range c.Board.Standings[:min(rows, len(c.Board.Standings))] {
		lines = append(lines, c.row(&w, &c.Board.Standings[i], width))
	}
	return lines
}

// row is one standing. Where even the narrowest row is too wide it is cut, and has no style.
func (c *Column) row(w *widths, st *ranking.Standing, width int) string {
	p := parts{rank: units.Thousands(st.Rank), member: terminal.Plain(st.Member), name: terminal.Plain(st.Name), result: result(c.Board, st)}
	if w.reached > 0 {
		p.reached = st.ReachedAt.In(c.Zone).Format(TimeForm(c.Board.Tick))
	}
	mark, style := " ", ""
	switch moved := c.Moved(*st); {
	case moved > 0:
		mark, style = "▲", string(terminal.Green)
	case moved < 0:
		mark, style = "▼", string(terminal.Red)
	}
	if !c.Coloured {
		style = ""
	}
	if plain := w.line(&p, mark, ""); uniseg.StringWidth(plain) > width {
		return terminal.Cut(plain, width)
	}
	return w.line(&p, mark, style)
}

// parts are those of a row, as texts.
type parts struct{ rank, member, name, result, reached string }

// widths are how wide the parts of all rows are; 0 of one that isn't shown.
type widths struct{ rank, member, name, result, reached int }

// widths are those of ranks and results, which are never cut.
func (c *Column) widths(rank int) widths {
	w := widths{rank: rank}
	for i := range c.Board.Standings {
		st := &c.Board.Standings[i]
		w.rank = max(w.rank, len(units.Thousands(st.Rank)))
		w.result = max(w.result, len(result(c.Board, st)))
	}
	return w
}

// Room that has to be left for a member before there is any for the time, or for a name.
const (
	roomBesideTime = 20
	roomBesideName = 12
)

// fit gives members, names and times what there is room for: the first most.
func (w *widths) fit(width, member, name, reached int) {
	room := width - w.rank - len(" ^ ") - len(" ") - w.result
	if room-reached-len("  ") >= min(roomBesideTime, member+name) {
		w.reached, room = reached, room-reached-len("  ")
	}
	if name > 0 && room-len("  ") >= 2*roomBesideName {
		room -= len("  ")
		w.member = min(member, max(roomBesideName, room-name))
		w.name = min(name, room-w.member)
		return
	}
	w.member = max(1, min(member, room))
}

// line puts a row together, the mark in a style.
func (w *widths) line(p *parts, mark, style string) string {
	line := strings.Repeat(" ", max(0, w.rank-len(p.rank))) + p.rank + " " + terminal.Styled(style, mark) + " " + fill(p.member, w.member)
	if w.name > 0 {
		line += "  " + fill(p.name, w.name)
	}
	line += " " + strings.Repeat(" ", max(0, w.result-len(p.result))) + p.result
	if w.reached > 0 {
		line += "  " + p.reached
	}
	return line
}

// fill cuts or pads a text to a width.
func fill(text string, width int) string { return pad(terminal.Cut(text, width), width) }

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

// TimeForm is how exactly a time is written that is known to the tick.
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
