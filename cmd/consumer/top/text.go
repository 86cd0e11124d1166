package top

// A board as text. What a member is called comes from whoever publishes events,
// so nothing of it reaches a terminal that isn't plain text.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// text writes boards for people.
type text struct {
	out    io.Writer
	zone   *time.Location
	width  int    // columns to keep within; 0 for any
	marked string // a member whose row is pointed at
}

func newText(out io.Writer, zone string) *text {
	t := &text{out: out, zone: time.UTC}
	if z, err := time.LoadLocation(zone); err == nil {
		t.zone = z
	}
	t.width, _ = terminal.Width(out)
	return t
}

// write writes a header line, the rows, and what is to be known about them. None
// is what is said where there are no rows.
func (t *text) write(b *board, none string) error {
	var s strings.Builder
	t.header(&s, b.Board)
	if len(b.Standings) > 0 {
		s.WriteByte('\n')
		t.rows(&s, b.Board)
	}
	for _, note := range append(b.notes(), none) {
		if note != "" {
			s.WriteString("\n" + note + "\n")
		}
	}
	return terminal.Write(t.out, s.String())
}

func (t *text) header(s *strings.Builder, b ranking.Board) {
	const minute = "2006-01-02 15:04"
	start, end := time.UnixMilli(b.Window.Start).In(t.zone), time.UnixMilli(b.Window.End).In(t.zone)
	fmt.Fprintf(s, "%s %s %s  [%s, %s) %s  %s\n", b.Name, b.Window.Period, b.Window.Name,
		start.Format(minute), end.Format(minute), t.zone, units.Plural(b.Members, "member"))
}

func (t *text) rows(s *strings.Builder, b ranking.Board) {
	form := boardview.TimeForm(b.Tick)
	counted := []string{"POINTS"}
	if b.Fields.Len() > 0 {
		counted = nil
		for _, f := range b.Fields.List() {
			counted = append(counted, strings.ToUpper(f.Name))
		}
	}
	who, called := []string{"RANK", "MEMBER"}, func(ranking.Standing) []string { return nil }
	if slices.ContainsFunc(b.Standings, func(st ranking.Standing) bool { return st.Name != "" }) {
		who, called = append(who, "NAME"), func(st ranking.Standing) []string { return []string{terminal.Plain(st.Name)} }
	}
	table := terminal.NewTable(slices.Concat(who, counted, []string{"REACHED AT"})...)
	table.Right[0] = true
	for i := range counted {
		table.Right[len(who)+i] = true
	}
	for _, st := range b.Standings {
		mark := ""
		if t.marked != "" && st.Member == t.marked && len(b.Standings) > 1 {
			mark = "> " // before the rank: in the member's column it could be part of an id
		}
		if st.Rank == 0 {
			table.Add(slices.Concat([]string{"-", terminal.Plain(st.Member)}, called(st), slices.Repeat([]string{"-"}, len(counted)+1))...)
			continue
		}
		values := []string{units.Thousands(st.Points)}
		if b.Fields.Len() > 0 {
			values = nil
			for i := range counted {
				values = append(values, units.Thousands(st.Tuple[i]))
			}
		}
		table.Add(slices.Concat([]string{mark + units.Thousands(st.Rank), terminal.Plain(st.Member)}, called(st), values, []string{st.ReachedAt.In(t.zone).Format(form)})...)
	}
	if t.width > 0 {
		table.Narrow(1, t.width)
	}
	table.Write(s)
}
