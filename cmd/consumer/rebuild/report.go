package rebuild

// What came of a rebuild as JSON. docs/json.md has its fields: none is ever left out, and
// what isn't there is null.

import (
	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/units"
)

type report struct {
	Swapped    bool               `json:"swapped"`
	DryRun     bool               `json:"dry_run"`
	Refused    []string           `json:"refused"` // why it may not swap, and what would let it
	Records    int64              `json:"records"`
	TooLarge   int64              `json:"too_large"` // of them, in batches that take too much memory: they don't count
	TookMS     int64              `json:"took_ms"`
	Holds      int                `json:"holds"`
	HeldMS     int64              `json:"held_ms"` // the last of them
	Partitions []rebuiltPartition `json:"partitions"`
	Windows    []rebuiltWindow    `json:"windows"`
	// Shards are there if there are several.
	Shards []rebuiltShard `json:"shards,omitempty"`
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
	Action     string  `json:"fate"`
	Why        *string `json:"why"` // it isn't replaced
	Incomplete bool    `json:"incomplete"`
	// Shards are those that this is of, where something else becomes of the window on others.
	Shards []int `json:"shards,omitempty"`
}

type rebuiltShard struct {
	Shard      int                `json:"shard"`  // from 0
	Master     *string            `json:"master"` // host:port, as far as the client knows
	Swapped    bool               `json:"swapped"`
	Unsure     bool               `json:"unsure"`     // whether it has swapped isn't known
	SwappedAt  *string            `json:"swapped_at"` // by this machine's clock
	Holds      int                `json:"holds"`
	HeldMS     int64              `json:"held_ms"` // the last of them
	Partitions []rebuiltPartition `json:"partitions"`
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
	Name   *string     `json:"name,omitempty"` // there where it is known
	Live   *sides.Side `json:"live"`           // null where the member isn't there
	Log    *sides.Side `json:"log"`
}

// reportOf is the report of a result that has a plan, refused for some reasons or not.
func reportOf(r *rebuild.Result, f *flags, refused []string) *report {
	all := &report{
		Swapped: r.Swapped, DryRun: f.dryRun, Refused: append([]string{}, refused...), Records: r.Records, TooLarge: r.TooLarge, TookMS: r.Took.Milliseconds(),
		Holds: r.Holds, HeldMS: r.Held.Milliseconds(), Windows: []rebuiltWindow{},
		DifferWindows: []windowDifference{}, Standings: []rowDifference{},
	}
	all.Partitions = partitionsOf(r.Plan)
	for i := range r.Plan.Windows {
		w := &r.Plan.Windows[i]
		one := rebuiltWindow{
			Board: w.Board, Period: w.Period, Window: w.Name, Start: units.TimeMS(w.Start), End: units.TimeMS(w.End),
			Action: w.Action.String(), Incomplete: w.Incomplete,
		}
		if w.Why != "" {
			one.Why = &w.Why
		}
		if r.Plan.Shards != nil {
			one.Shards = r.Plan.Shards[i]
		}
		all.Windows = append(all.Windows, one)
	}
	all.addShards(r)
	if r.Holds > 0 && (f.dryRun || f.diff) {
		all.addDifferences(r)
	}
	return all
}

func (all *report) addDifferences(r *rebuild.Result) {
	all.Differ, all.AtLeast = new(int), new(!r.Exact)
	for i := range r.Differ {
		if d := &r.Differ[i]; d.Differ > 0 {
			*all.Differ += d.Differ
			all.DifferWindows = append(all.DifferWindows, windowDifference{d.Board, d.Period, d.Name, d.Differ, d.OnlyA, d.OnlyB})
		}
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		all.Standings = append(all.Standings, rowDifference{
			d.Board, d.Period, d.Name, d.Member, sides.Called(d), sides.Of(d.A), sides.Of(d.B),
		})
	}
}

// partitionsOf are those of a plan.
func partitionsOf(p *rebuild.Plan) []rebuiltPartition {
	all := []rebuiltPartition{}
	for _, s := range p.Starts {
		one := rebuiltPartition{Partition: s.Field, From: s.At, LogStart: s.LogStart}
		if to, ok := p.Until[s.Field]; ok {
			one.To, one.Offsets = &to, new(to-s.At)
		}
		if s.Origin.Time > 0 {
			one.CompleteSince = new(units.TimeMS(s.Origin.Time))
		}
		if at, ok := p.Shadow[s.Field]; ok {
			one.Position = &at
		}
		all = append(all, one)
	}
	return all
}

// addShards adds what came of it on each, where there are several.
func (all *report) addShards(r *rebuild.Result) {
	if len(r.Shards) < 2 {
		return
	}
	for i := range r.Shards {
		s := &r.Shards[i]
		one := rebuiltShard{Shard: i, Swapped: s.Swapped, Unsure: s.Unsure, Holds: s.Holds, HeldMS: s.Held.Milliseconds(), Partitions: []rebuiltPartition{}}
		if s.Addr != "" {
			one.Master = &s.Addr
		}
		if !s.At.IsZero() {
			one.SwappedAt = new(units.TimeMS(s.At.UnixMilli()))
		}
		if s.Plan != nil {
			one.Partitions = partitionsOf(s.Plan)
		}
		all.Shards = append(all.Shards, one)
	}
}
