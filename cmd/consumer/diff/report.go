package diff

// This file writes the differences as text and as JSON.

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/diff"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

type report struct {
	A         string     `json:"a"` // the configured prefix
	B         string     `json:"b"`
	Equal     bool       `json:"equal"`
	Differ    int        `json:"differ"` // number of standings that differ
	Positions []position `json:"positions"`
	Windows   []window   `json:"windows"`
	Standings []standing `json:"standings"`

	windows   []diff.Window
	positions []diff.Position
	listed    []ranking.Difference
	zone      *time.Location
}

// position is the position of a partition under both prefixes.
type position struct {
	Partition string           `json:"partition"`
	A         cli.OptionalText `json:"a"` // null if the ledger of A lacks the partition
	B         cli.OptionalText `json:"b"`
}

type window struct {
	Board   string           `json:"board"`
	Period  string           `json:"period"`
	Window  string           `json:"window"`
	Start   string           `json:"start"`
	End     string           `json:"end"`
	Why     cli.OptionalText `json:"not_compared"` // the reason; null if the window was compared
	Differ  int              `json:"differ"`
	AtLeast bool             `json:"at_least"` // more standings differ than were counted
	Exact   bool             `json:"exact"`
}

type standing struct {
	Board  string      `json:"board"`
	Period string      `json:"period"`
	Window string      `json:"window"`
	Member string      `json:"member"`
	Name   string      `json:"name,omitempty"` // absent if it is unknown
	A      *sides.Side `json:"a"`              // null if A lacks the member
	B      *sides.Side `json:"b"`
}

// fill converts the comparison into the JSON report.
func (r *report) fill() {
	for i := range r.positions {
		p := &r.positions[i]
		r.Positions = append(r.Positions, position{p.Partition, cli.OptionalText(p.A.Least), cli.OptionalText(p.B.Least)})
	}
	for i := range r.windows {
		w := &r.windows[i]
		r.Equal = r.Equal && !w.Differs()
		r.Differ += len(w.Members)
		r.Windows = append(r.Windows, window{
			Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End),
			Why: cli.OptionalText(w.Why), Differ: len(w.Members), AtLeast: w.More, Exact: w.Exact,
		})
	}
	for i := range r.listed {
		d := &r.listed[i]
		r.Standings = append(r.Standings, standing{
			d.Board, d.Period, d.Name, d.Member, d.Called, sides.Of(d.A), sides.Of(d.B),
		})
	}
}

func (r *report) write(out io.Writer) error {
	var s strings.Builder
	r.writePositions(&s)
	r.writeWindows(&s)
	r.writeStandings(&s)
	return terminal.Write(out, s.String())
}

func (r *report) writePositions(s *strings.Builder) {
	t := terminal.NewTable("PARTITION", r.A, r.B)
	same := true
	for i := range r.positions {
		if p := &r.positions[i]; !p.Same() {
			same = false
			t.Add(p.Partition, span(p.A), span(p.B))
		}
	}
	if same {
		fmt.Fprintf(s, "Both ledgers are at the same positions.\n\n")
		return
	}
	s.WriteString("The ledgers are at different positions, so standings differ by the events in between:\n\n")
	t.Write(s)
	s.WriteString("\n")
}

// span returns the lowest and the highest position of a partition's shards.
func span(of diff.Span) string {
	least := cmp.Or(of.Least, "nothing")
	if of.Least == of.Most {
		return least
	}
	return least + " to " + of.Most
}

func (r *report) writeWindows(s *strings.Builder) {
	t := terminal.NewTable("WINDOW", "DIFFER", "")
	t.Right[1] = true
	differ := 0
	for i := range r.windows {
		if w := &r.windows[i]; w.Differs() {
			differ++
			t.Add(w.Listing(), units.Thousands(int64(len(w.Members))), remark(w))
		}
	}
	if differ > 0 {
		t.Write(s)
		s.WriteString("\n")
	}
	fmt.Fprintf(s, "%s equal of %s.\n", units.Plural(int64(len(r.windows)-differ), "window"), units.Thousands(int64(len(r.windows))))
}

func remark(w *diff.Window) string {
	switch {
	case w.Why != "":
		return "not compared: " + w.Why
	case w.More:
		return "more differ than are counted"
	case !w.Exact:
		return "written meanwhile, or not at the same positions"
	}
	return ""
}

func (r *report) writeStandings(s *strings.Builder) {
	if len(r.listed) == 0 {
		return
	}
	s.WriteString("\n")
	sides.Table(r.listed, r.A, r.B, r.zone).Write(s)
	if more := r.Differ - len(r.listed); more > 0 {
		fmt.Fprintf(s, "and %s more: --limit\n", units.Thousands(int64(more)))
	}
	fmt.Fprintf(s, "times are those of %s\n", r.zone)
}
