package diff

// What differs, as text and as JSON.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/diff"
)

type report struct {
	A         string     `json:"a"` // the configured prefix
	B         string     `json:"b"`
	Equal     bool       `json:"equal"`
	Differ    int        `json:"differ"`   // standings
	Clusters  *string    `json:"clusters"` // how those that were read differ
	Positions []position `json:"positions"`
	Windows   []window   `json:"windows"`
	Standings []standing `json:"standings"` // with --list

	windows   []diff.Window
	positions []diff.Position
	listed    []ranking.Difference
	zone      *time.Location
}

// position is how far both are in a partition.
type position struct {
	Partition string  `json:"partition"`
	A         *string `json:"a"` // null where it isn't in it
	B         *string `json:"b"`
}

type window struct {
	Board       string   `json:"board"`
	Period      string   `json:"period"`
	Window      string   `json:"window"`
	Start       string   `json:"start"`
	End         string   `json:"end"`
	Why         *string  `json:"not_compared"` // why it wasn't
	InA         bool     `json:"in_a"`
	InB         bool     `json:"in_b"`
	OnlyA       int      `json:"only_a"`
	OnlyB       int      `json:"only_b"`
	Points      int      `json:"points_differ"`
	Times       int      `json:"reached_at_differ"`
	Foreign     int      `json:"foreign_scores"`
	Exact       bool     `json:"exact"`
	AtLeast     bool     `json:"at_least"`     // more differ than are counted
	IncompleteA []string `json:"incomplete_a"` // partitions whose events are missing in part
	IncompleteB []string `json:"incomplete_b"`
}

type standing struct {
	Board  string      `json:"board"`
	Period string      `json:"period"`
	Window string      `json:"window"`
	Member string      `json:"member"`
	Name   *string     `json:"name,omitempty"` // there where it is known
	A      *sides.Side `json:"a"`              // null where the member isn't there
	B      *sides.Side `json:"b"`
}

// take makes the report of what was compared, and asks how far both are now.
func (r *report) take(ctx context.Context, d *diff.Prefixes) error {
	var err error
	if r.positions, err = d.Positions(ctx); err != nil {
		return err
	}
	r.Positions = []position{}
	for i := range r.positions {
		p := &r.positions[i]
		r.Positions = append(r.Positions, position{p.Partition, orNull(p.A), orNull(p.B)})
	}
	r.Equal, r.Differ, r.Windows = true, 0, []window{}
	for i := range r.windows {
		w := &r.windows[i]
		var why *string
		if w.Why != "" {
			why = &w.Why
		}
		r.Equal = r.Equal && !w.Differs()
		r.Differ += w.OnlyA + w.OnlyB + w.Points + w.Times + w.Foreign
		r.Windows = append(r.Windows, window{
			Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End),
			Why: why, InA: w.InA, InB: w.InB, OnlyA: w.OnlyA, OnlyB: w.OnlyB, Points: w.Points, Times: w.Times, Foreign: w.Foreign,
			Exact: w.Exact, AtLeast: w.More, IncompleteA: append([]string{}, w.IncompleteA...), IncompleteB: append([]string{}, w.IncompleteB...),
		})
	}
	for i := range r.listed {
		d := &r.listed[i]
		r.Standings = append(r.Standings, standing{
			d.Board, d.Period, d.Name, d.Member, sides.Called(d), sides.Of(d.A), sides.Of(d.B),
		})
	}
	return nil
}

func orNull(position string) *string {
	if position == "" {
		return nil
	}
	return &position
}

func (r *report) write(out io.Writer, list bool) error {
	var s strings.Builder
	if r.Clusters != nil {
		fmt.Fprintf(&s, "%s.\n", terminal.Plain(*r.Clusters))
	}
	r.writePositions(&s)
	r.writeWindows(&s)
	if list {
		r.writeStandings(&s)
	}
	return terminal.Write(out, s.String())
}

func (r *report) writePositions(s *strings.Builder) {
	t := terminal.NewTable("PARTITION", r.A, r.B)
	apart := 0
	for i := range r.positions {
		if p := &r.positions[i]; !p.Same {
			apart++
			t.Add(p.Partition, span(p.A, p.FurthestA), span(p.B, p.FurthestB))
		}
	}
	if apart == 0 {
		fmt.Fprintf(s, "Both ledgers are at the same positions.\n\n")
		return
	}
	s.WriteString("The ledgers are at other positions, so standings differ by what is between:\n\n")
	t.Write(s)
	s.WriteString("\n")
}

// span is from where to where the shards are.
func span(least, most string) string {
	orNone := func(position string) string { return cmp.Or(position, "nothing") }
	if least == most {
		return orNone(least)
	}
	return orNone(least) + " to " + orNone(most)
}

func (r *report) writeWindows(s *strings.Builder) {
	t := terminal.NewTable("WINDOW", "ONLY "+r.A, "ONLY "+r.B, "POINTS", "REACHED_AT", "")
	for i := 1; i <= 4; i++ {
		t.Right[i] = true
	}
	equal, rows, incomplete := 0, 0, map[string]bool{}
	for i := range r.windows {
		w := &r.windows[i]
		name := w.Listing()
		for _, p := range w.IncompleteA {
			incomplete[r.A+", "+terminal.Plain(p)] = true
		}
		for _, p := range w.IncompleteB {
			incomplete[r.B+", "+terminal.Plain(p)] = true
		}
		if !w.Differs() {
			equal++
			continue
		}
		rows++
		t.Add(name, number(w.OnlyA), number(w.OnlyB), number(w.Points), number(w.Times), remark(w))
	}
	if rows > 0 {
		t.Write(s)
		s.WriteString("\n")
	}
	fmt.Fprintf(s, "%s equal of %s.\n", units.Plural(int64(equal), "window"), units.Thousands(int64(len(r.windows))))
	if len(incomplete) > 0 {
		fmt.Fprintf(s, "Some windows lack events from before a partition was first read: %s.\n", strings.Join(slices.Sorted(maps.Keys(incomplete)), "; "))
	}
}

func remark(w *diff.Window) string {
	var all []string
	if w.Why != "" {
		return "not compared: " + w.Why
	}
	if w.More {
		all = append(all, "more differ than are counted")
	}
	if w.Foreign > 0 {
		all = append(all, units.Plural(int64(w.Foreign), "score")+" that standings didn't write")
	}
	if !w.Exact {
		all = append(all, "written meanwhile, or not at the same positions")
	}
	return strings.Join(all, "; ")
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return units.Thousands(int64(n))
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
