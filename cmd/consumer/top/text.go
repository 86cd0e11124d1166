package top

// This file writes a board as text. Producers choose ids and names, so they are escaped before they reach a
// terminal.

import (
	"io"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/zoneinfo"
)

// text writes boards for people.
type text struct {
	out    io.Writer
	zone   *time.Location
	width  int    // maximum width in columns; 0: unlimited
	marked string // the member whose row is marked
}

func newText(out io.Writer, zone string) *text {
	t := &text{out: out, zone: zoneOf(zone)}
	t.width, _ = terminal.Width(out)
	return t
}

// zoneOf returns a configured time zone, or UTC if this machine does not know it.
func zoneOf(name string) *time.Location {
	if zone, err := zoneinfo.Load(name); err == nil {
		return zone
	}
	return time.UTC
}

// write writes a title, the rows, and the notes. none is written in addition if it is not empty.
func (t *text) write(b *board, none string) error {
	var s strings.Builder
	s.WriteString(boardview.Title(&b.Board, t.zone, 0) + "\n")
	if len(b.Standings) > 0 {
		mark := func(st ranking.Standing) string {
			if t.marked != "" && st.Member == t.marked && len(b.Standings) > 1 {
				return "> "
			}
			return ""
		}
		layout := boardview.Layout{Width: t.width, Headings: true, Zone: t.zone, Mark: mark}
		s.WriteString("\n" + strings.Join(layout.Rows(&b.Board), "\n") + "\n")
	}
	for _, note := range append(b.notes(), none) {
		if note != "" {
			s.WriteString("\n" + note + "\n")
		}
	}
	return terminal.Write(t.out, s.String())
}
