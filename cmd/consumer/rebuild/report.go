package rebuild

// This file holds the result of a rebuild as JSON. The JSON is an interface: fields are never omitted or
// renamed, and a missing value is null. docs/json.md describes them.

import (
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/sides"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/units"
)

type report struct {
	Swapped    bool               `json:"swapped"`
	DryRun     bool               `json:"dry_run"`
	Refused    []string           `json:"refused"` // why the swap is refused, and what would permit it
	Records    int64              `json:"records"`
	TooLarge   int64              `json:"too_large"` // records in batches that take too much memory; they do not count
	TookMS     int64              `json:"took_ms"`
	Holds      int                `json:"holds"`
	HeldMS     int64              `json:"held_ms"` // duration of the last hold
	Partitions []rebuiltPartition `json:"partitions"`
	Windows    []rebuiltWindow    `json:"windows"`
	// Shards is present only if there are several.
	Shards []rebuiltShard `json:"shards,omitempty"`
	// Set after a dry run and with --diff; otherwise null and empty.
	Differ        *int               `json:"differ"` // number of standings that differ
	AtLeast       *bool              `json:"at_least"`
	DifferWindows []windowDifference `json:"differ_windows"`
	Standings     []rowDifference    `json:"standings"`
}

type rebuiltPartition struct {
	Partition string `json:"partition"`
	From      int64  `json:"from"`
	// To is the live ledger's position when the partition was started; null if the ledger lacked it then.
	To            *int64           `json:"to"`
	Offsets       *int64           `json:"offsets"`        // from From to To
	CompleteSince cli.OptionalText `json:"complete_since"` // null: from the beginning
	LogStart      bool             `json:"log_start"`      // true if the log does not go back further
	Position      cli.OptionalText `json:"position"`       // the position up to which it was read, as in the ledger
}

type rebuiltWindow struct {
	Board      string           `json:"board"`
	Period     string           `json:"period"`
	Window     string           `json:"window"`
	Start      string           `json:"start"`
	End        string           `json:"end"`
	Action     string           `json:"fate"`
	Why        cli.OptionalText `json:"why"` // why it is not replaced; null if it is
	Incomplete bool             `json:"incomplete"`
	// Shards lists the shards that this entry is about, if the window has another fate on other shards.
	Shards []int `json:"shards,omitempty"`
}

type rebuiltShard struct {
	Shard      int                `json:"shard"`  // from 0
	Master     cli.OptionalText   `json:"master"` // host:port, if the client knows it
	Swapped    bool               `json:"swapped"`
	Unsure     bool               `json:"unsure"`     // true if it is unknown whether the shard was swapped
	SwappedAt  cli.OptionalText   `json:"swapped_at"` // by this machine's clock
	Holds      int                `json:"holds"`
	HeldMS     int64              `json:"held_ms"` // duration of the last hold
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
	Name   string      `json:"name,omitempty"` // absent if it is unknown
	Live   *sides.Side `json:"live"`           // null if the member has no standing there
	Log    *sides.Side `json:"log"`
}

// reportOf returns the report of a result that has a plan. refused lists the reasons of a refusal; it is
// empty otherwise.
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
			Action: w.Action.String(), Why: cli.OptionalText(w.Why), Incomplete: w.Incomplete,
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
			d.Board, d.Period, d.Name, d.Member, d.Called, sides.Of(d.A), sides.Of(d.B),
		})
	}
}

// partitionsOf returns the partitions of a plan.
func partitionsOf(p *rebuild.Plan) []rebuiltPartition {
	all := []rebuiltPartition{}
	for _, s := range p.Starts {
		one := rebuiltPartition{Partition: s.Field, From: s.At, LogStart: s.LogStart, Position: cli.OptionalText(p.Shadow[s.Field])}
		if to, ok := p.Until[s.Field]; ok {
			one.To, one.Offsets = &to, new(to-s.At)
		}
		if s.Origin.Time > 0 {
			one.CompleteSince = cli.OptionalText(units.TimeMS(s.Origin.Time))
		}
		all = append(all, one)
	}
	return all
}

// addShards adds the result of each shard, if there are several.
func (all *report) addShards(r *rebuild.Result) {
	if len(r.Shards) < 2 {
		return
	}
	for i := range r.Shards {
		s := &r.Shards[i]
		one := rebuiltShard{
			Shard: i, Master: cli.OptionalText(s.Addr), Swapped: s.Swapped, Unsure: s.Unsure, Holds: s.Holds, HeldMS: s.Held.Milliseconds(),
			Partitions: []rebuiltPartition{},
		}
		if !s.At.IsZero() {
			one.SwappedAt = cli.OptionalText(units.TimeMS(s.At.UnixMilli()))
		}
		if s.Plan != nil {
			one.Partitions = partitionsOf(s.Plan)
		}
		all.Shards = append(all.Shards, one)
	}
}
