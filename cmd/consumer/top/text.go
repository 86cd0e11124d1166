package top

// A board as text. What a member is called comes from whoever publishes events,
// so nothing of it reaches a terminal that isn't plain text.

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
	width  int    // columns to keep within; 0 for any
	marked string // a member whose row is pointed at
}

func newText(out io.Writer, zone string) *text {
	t := &text{out: out, zone: zoneOf(zone)}
	t.width, _ = terminal.Width(out)
	return t
}

// zoneOf is a time zone of the configuration, or UTC if this machine doesn't know it.
func zoneOf(name string) *time.Location {
	if zone, err := zoneinfo.Load(name); err == nil {
		return zone
	}
	return time.UTC
}

// write writes a header line, the rows, and what is to be known about them. None
// is what is said where there are no rows.
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
