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

// write writes a title, the rows, and the notes.
func write(out io.Writer, b *board, notes []string) error {
	var s strings.Builder
	s.WriteString(boardview.Title(&b.Board, b.zone(), 0) + "\n")
	if len(b.Standings) > 0 {
		mark := func(st ranking.Standing) string {
			if b.marked != "" && st.Member == b.marked && len(b.Standings) > 1 {
				return "> "
			}
			return ""
		}
		width, _ := terminal.Width(out)
		layout := boardview.Layout{Width: width, Headings: true, Zone: b.zone(), Mark: mark}
		s.WriteString("\n" + strings.Join(layout.Rows(&b.Board), "\n") + "\n")
	}
	for _, note := range notes {
		s.WriteString("\n" + note + "\n")
	}
	return terminal.Write(out, s.String())
}

// zone returns the time zone of the board's period, or UTC if this machine does not know it.
func (b *board) zone() *time.Location {
	if zone, err := zoneinfo.Load(b.Target.Period.Zone); err == nil {
		return zone
	}
	return time.UTC
}
