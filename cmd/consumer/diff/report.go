package diff

// What differs, as text and as JSON.

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

type report struct {
	A         string     `json:"a"` // the configured prefix
	B         string     `json:"b"`
	Equal     bool       `json:"equal"`
	Differ    int        `json:"differ"` // standings
	Clusters  string     `json:"clusters,omitempty"`
	Positions []position `json:"positions"`
	Windows   []window   `json:"windows"`
	Standings []standing `json:"standings,omitempty"`

	windows []ranking.WindowDiff
	zone    *time.Location
}

// position is how far both are in a partition; empty where one isn't in it.
type position struct {
	Partition string `json:"partition"`
	A         string `json:"a"`
	B         string `json:"b"`
}

type window struct {
	Board       string   `json:"board"`
	Period      string   `json:"period"`
	Window      string   `json:"window"`
	Start       string   `json:"start"`
	End         string   `json:"end"`
	Why         string   `json:"not_compared,omitempty"`
	InA         bool     `json:"in_a"`
	InB         bool     `json:"in_b"`
	OnlyA       int      `json:"only_a"`
	OnlyB       int      `json:"only_b"`
	Points      int      `json:"points_differ"`
	Times       int      `json:"reached_at_differ"`
	Foreign     int      `json:"foreign_scores"`
	Exact       bool     `json:"exact"`
	AtLeast     bool     `json:"at_least"` // more differ than are counted
	IncompleteA []string `json:"incomplete_a,omitempty"`
	IncompleteB []string `json:"incomplete_b,omitempty"`
}

type standing struct {
	Board  string `json:"board"`
	Period string `json:"period"`
	Window string `json:"window"`
	Member string `json:"member"`
	A      *side  `json:"a"` // null where the member isn't there
	B      *side  `json:"b"`
}

type side struct {
	Points    int64     `json:"points"`
	ReachedAt time.Time `json:"reached_at,omitzero"`
	Foreign   string    `json:"foreign_score,omitempty"` // as text: it may be infinite; then nothing else is known
}

func standingOf(d ranking.Difference) standing {
	return standing{Board: d.Board, Period: d.Period, Window: d.Window, Member: d.Member, A: sideOf(d.A), B: sideOf(d.B)}
}

func sideOf(r ranking.Row) *side {
	switch {
	case !r.There:
		return nil
	case r.Foreign:
		return &side{Foreign: strconv.FormatFloat(r.Score, 'g', -1, 64)}
	}
	return &side{Points: r.Points, ReachedAt: r.ReachedAt}
}

// take makes the report of what was compared, and asks how far both are now.
func (r *report) take(ctx context.Context, d *ranking.Diff) error {
	a, b, err := d.Positions(ctx)
	if err != nil {
		return err
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	r.Positions = []position{}
	for _, field := range slices.Sorted(maps.Keys(both)) {
		r.Positions = append(r.Positions, position{field, a[field], b[field]})
	}
	r.Equal, r.Differ, r.Windows = true, 0, []window{}
	for i := range r.windows {
		w := &r.windows[i]
		r.Equal = r.Equal && !w.Differs()
		r.Differ += w.OnlyA + w.OnlyB + w.Points + w.Times + w.Foreign
		r.Windows = append(r.Windows, window{
			Board: w.Board, Period: w.Period, Window: w.Window, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End),
			Why: w.Why, InA: w.InA, InB: w.InB, OnlyA: w.OnlyA, OnlyB: w.OnlyB, Points: w.Points, Times: w.Times, Foreign: w.Foreign,
			Exact: w.Exact, AtLeast: w.More, IncompleteA: w.IncompleteA, IncompleteB: w.IncompleteB,
		})
	}
	return nil
}

func (r *report) write(out io.Writer, list bool) error {
	var s strings.Builder
	if r.Clusters != "" {
		fmt.Fprintf(&s, "%s.\n", r.Clusters)
	}
	r.writePositions(&s)
	r.writeWindows(&s)
	if list {
		r.writeStandings(&s)
	}
	_, err := io.WriteString(out, s.String())
	return err
}

func (r *report) writePositions(s *strings.Builder) {
	t := terminal.NewTable("PARTITION", r.A, r.B)
	apart := 0
	for _, p := range r.Positions {
		if p.A != p.B {
			apart++
			t.Add(p.Partition, orNone(p.A), orNone(p.B))
		}
	}
	if apart == 0 {
		fmt.Fprintf(s, "Both ledgers stand at the same positions.\n\n")
		return
	}
	s.WriteString("The ledgers stand at other positions, so standings differ by what lies between:\n\n")
	t.Write(s)
	s.WriteString("\n")
}

func orNone(position string) string {
	if position == "" {
		return "nothing"
	}
	return position
}

func (r *report) writeWindows(s *strings.Builder) {
	t := terminal.NewTable("WINDOW", "ONLY "+r.A, "ONLY "+r.B, "POINTS", "REACHED_AT", "")
	for i := 1; i <= 4; i++ {
		t.Right[i] = true
	}
	equal, rows, incomplete := 0, 0, map[string]bool{}
	for i := range r.windows {
		w := &r.windows[i]
		name := w.Board + ":" + w.Period + ":" + w.Window
		for _, p := range w.IncompleteA {
			incomplete[r.A+", "+p] = true
		}
		for _, p := range w.IncompleteB {
			incomplete[r.B+", "+p] = true
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

func remark(w *ranking.WindowDiff) string {
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
	if len(r.Standings) == 0 {
		return
	}
	t := terminal.NewTable("WINDOW", "MEMBER", r.A, r.B)
	for _, d := range r.Standings {
		t.Add(d.Board+":"+d.Period+":"+d.Window, terminal.Plain(d.Member), r.side(d.A), r.side(d.B))
	}
	s.WriteString("\n")
	t.Write(s)
	if more := r.Differ - len(r.Standings); more > 0 {
		fmt.Fprintf(s, "and %s more: --limit\n", units.Thousands(int64(more)))
	}
}

func (r *report) side(of *side) string {
	switch {
	case of == nil:
		return "-"
	case of.Foreign != "":
		return of.Foreign + ", which is no score of this layout"
	}
	return units.Thousands(of.Points) + " at " + of.ReachedAt.In(r.zone).Format("2006-01-02 15:04:05.000")
}
