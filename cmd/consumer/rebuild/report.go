package rebuild

// What came of a rebuild as JSON. docs/json.md has its fields: none is ever left out, and
// what isn't there is null.

import (
	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/rebuild"
)

type report struct {
	Swapped    bool               `json:"swapped"`
	DryRun     bool               `json:"dry_run"`
	Refused    []string           `json:"refused"` // why it may not swap, and what would let it
	Records    int64              `json:"records"`
	TookMS     int64              `json:"took_ms"`
	Holds      int                `json:"holds"`
	HeldMS     int64              `json:"held_ms"` // the last of them
	Partitions []rebuiltPartition `json:"partitions"`
	Windows    []rebuiltWindow    `json:"windows"`
	// Of a dry run, and with --diff; else null and empty.
	Differ        *int               `json:"differ"` // standings
	AtLeast       *bool              `json:"at_least"`
	DifferWindows []windowDifference `json:"differ_windows"`
	Standings     []rowDifference    `json:"standings"`
}

type rebuiltPartition struct {
	Partition string `json:"partition"`
	From      int64  `json:"from"`
	// To is where the live ledger stood when the partition was begun, unless it wasn't in
	// it then.
	To            *int64  `json:"to"`
	Offsets       *int64  `json:"offsets"`        // between the two
	CompleteSince *string `json:"complete_since"` // null: from the beginning
	LogStart      bool    `json:"log_start"`      // the log goes back no further
	Position      *string `json:"position"`       // where it was read to, as the ledger has it
}

type rebuiltWindow struct {
	Board      string  `json:"board"`
	Period     string  `json:"period"`
	Window     string  `json:"window"`
	Start      string  `json:"start"`
	End        string  `json:"end"`
	Fate       string  `json:"fate"`
	Why        *string `json:"why"` // it isn't replaced
	Incomplete bool    `json:"incomplete"`
}

type windowDifference struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Differ   int    `json:"differ"`
	OnlyLive int    `json:"only_live"`
	OnlyLog  int    `json:"only_log"`
}

type rowDifference struct {
	Board  string      `json:"board"`
	Period string      `json:"period"`
	Window string      `json:"window"`
	Member string      `json:"member"`
	Live   *sides.Side `json:"live"` // null where the member isn't there
	Log    *sides.Side `json:"log"`
}

// reportOf is the report of a result that has a plan, refused for some reasons or not.
func reportOf(r *rebuild.Result, f *flags, refused []string) *report {
	all := &report{
		Swapped: r.Swapped, DryRun: f.dryRun, Refused: append([]string{}, refused...), Records: r.Records, TookMS: r.Took.Milliseconds(),
		Holds: r.Holds, HeldMS: r.Held.Milliseconds(), Partitions: []rebuiltPartition{}, Windows: []rebuiltWindow{},
		DifferWindows: []windowDifference{}, Standings: []rowDifference{},
	}
	for _, s := range r.Plan.Starts {
		p := rebuiltPartition{Partition: s.Field, From: s.At, LogStart: s.LogStart}
		if to, ok := r.Plan.Until[s.Field]; ok {
			offsets := to - s.At
			p.To, p.Offsets = &to, &offsets
		}
		if s.Origin.Time > 0 {
			since := units.TimeMS(s.Origin.Time)
			p.CompleteSince = &since
		}
		if at, ok := r.Plan.Shadow[s.Field]; ok {
			p.Position = &at
		}
		all.Partitions = append(all.Partitions, p)
	}
	for i := range r.Plan.Windows {
		w := &r.Plan.Windows[i]
		one := rebuiltWindow{
			Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End),
			Fate: w.Fate.String(), Incomplete: w.Incomplete,
		}
		if w.Why != "" {
			one.Why = &w.Why
		}
		all.Windows = append(all.Windows, one)
	}
	if r.Holds > 0 && (f.dryRun || f.diff) {
		all.addDifferences(r)
	}
	return all
}

func (all *report) addDifferences(r *rebuild.Result) {
	differ, atLeast := 0, !r.Exact
	all.Differ, all.AtLeast = &differ, &atLeast
	for i := range r.Differ {
		if d := &r.Differ[i]; d.Differ > 0 {
			differ += d.Differ
			all.DifferWindows = append(all.DifferWindows, windowDifference{d.Board, d.Period, d.Name, d.Differ, d.OnlyA, d.OnlyB})
		}
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		all.Standings = append(all.Standings, rowDifference{d.Board, d.Period, d.Window, d.Member, sides.Of(d.A), sides.Of(d.B)})
	}
}
