package boards

// This file writes the list as JSON and as text. Producers choose the names of boards, so names are escaped
// before they reach a terminal.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	shards "github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// report is the JSON; docs/json.md describes its fields.
type report struct {
	Prefix      string         `json:"prefix"`
	Boards      int64          `json:"boards"`       // boards that match, listed below or not
	WindowCount int64          `json:"window_count"` // windows of these boards
	Windows     []windowReport `json:"windows"`      // at most --limit of the windows
}

type windowReport struct {
	Board   string `json:"board"`
	Period  string `json:"period"`
	Window  string `json:"window"`
	Start   string `json:"start"`
	End     string `json:"end"`
	Members *int64 `json:"members"` // null if Redis has lost the window's key

	start, end int64
}

func reportWindow(w ledger.Window, members int64) windowReport {
	r := windowReport{Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End), start: w.Start, end: w.End}
	if members > 0 { // Redis keeps no empty sorted set
		r.Members = &members
	}
	return r
}

// sortWindows sorts by board, period and start. Built-in periods come first, the shortest first; configured
// periods follow by name.
func sortWindows(all []shards.Listed) {
	known := periods.All()
	order := func(w shards.Listed) int {
		if i := slices.Index(known, periods.Period(w.Period)); i >= 0 {
			return i
		}
		return len(known)
	}
	slices.SortFunc(all, func(a, b shards.Listed) int {
		return cmp.Or(strings.Compare(a.Board, b.Board), order(a)-order(b), strings.Compare(a.Period, b.Period), cmp.Compare(a.Start, b.Start), strings.Compare(a.Name, b.Name))
	})
}

func (r *report) text(zone *time.Location) string {
	if r.WindowCount == 0 {
		return fmt.Sprintf("No board has a window under the prefix %s: no event has been counted there.\n", terminal.Plain(r.Prefix))
	}
	const minute = "2006-01-02 15:04"
	table := terminal.NewTable("BOARD", "PERIOD", "WINDOW", "START", "END", "MEMBERS")
	table.Right[5] = true
	for _, w := range r.Windows {
		members := "gone"
		if w.Members != nil {
			members = units.Thousands(*w.Members)
		}
		table.Add(terminal.Plain(w.Board), terminal.Plain(w.Period), terminal.Plain(w.Window),
			time.UnixMilli(w.start).In(zone).Format(minute), time.UnixMilli(w.end).In(zone).Format(minute), members)
	}
	total := fmt.Sprintf("\n%s, %s", units.Plural(r.Boards, "board"), units.Plural(r.WindowCount, "window"))
	if shown := int64(len(r.Windows)); shown < r.WindowCount {
		total += fmt.Sprintf(", %s of them listed: name a board, or some ('eu*'), or --limit 0 for all", units.Thousands(shown))
	}
	return strings.Join(append(table.Lines(), total), "\n") + "\n"
}
