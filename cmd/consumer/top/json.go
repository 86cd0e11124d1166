package top

// A board as JSON, for programs. Its JSON is an interface: fields are never omitted or renamed, and a
// missing value is null.

import (
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/units"
)

type report struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Start    string `json:"start"` // RFC 3339 with ms, in UTC, like all times here
	End      string `json:"end"`   // exclusive
	TimeZone string `json:"time_zone"`
	TickMS   int64  `json:"tick_ms"` // the precision of reached_at
	Members  int64  `json:"members"`
	// HasEvents is false if no event has counted yet or the retention is over.
	HasEvents bool   `json:"has_events"`
	State     string `json:"state"` // one of the states of internal/reading
	// AsOf is the time of the read, by Redis's clock, or when the archive's copy was taken.
	AsOf *string `json:"as_of"`
	// Revision is set for a final window, which nothing changes any more.
	Revision  *int64               `json:"revision"`
	Lost      *string              `json:"lost"`                 // board_lost, board_unlisted, ledger_lost, schema or shard_lost
	LostShard *string              `json:"lost_shard,omitempty"` // with several shards: the shard concerned
	Refilling []refillingPartition `json:"refilling"`            // partitions being read again after a loss
	// The fields below come from the workers' last reports.
	Lag        *int64                     `json:"lag"`         // uncounted records
	BehindMS   *int64                     `json:"behind_ms"`   // age of the oldest uncounted record
	ReportedAt *string                    `json:"reported_at"` // time of the oldest of the last reports
	Stalled    []reading.StalledPartition `json:"stalled_partitions"`
	NotBegun   []string                   `json:"not_begun"`  // topics of which no record was read yet
	Incomplete []string                   `json:"incomplete"` // partitions that lack events
	Standings  []standing                 `json:"standings"`
	// Shards is present only with --shards.
	Shards []shardLedger `json:"shards,omitempty"`
}

// shardLedger holds the ledger of one shard.
type shardLedger struct {
	Shard  int               `json:"shard"` // from 0
	AsOf   string            `json:"as_of"` // time of the reading, by the shard's server
	Ledger map[string]string `json:"ledger"`
}

type refillingPartition struct {
	Partition string `json:"partition"`
	Position  string `json:"position"`
	Until     int64  `json:"until"` // the log's end when the loss was detected
}

type standing struct {
	Rank      *int64  `json:"rank"` // from 1; null, like the fields below, if the member has no standing
	Member    string  `json:"member"`
	Name      *string `json:"name,omitempty"` // present if members have names
	Points    *int64  `json:"points"`         // null also on a board with its own fields
	ReachedAt *string `json:"reached_at"`

	Fields *fields.Values `json:"fields,omitempty"`
}

func reportOf(b *board, shards bool) report {
	r := report{
		Board: b.Name, Period: string(b.Window.Period), Window: b.Window.Name,
		Start: units.TimeMS(b.Window.Start), End: units.TimeMS(b.Window.End), TimeZone: b.Target.Period.Zone,
		TickMS: b.Tick.Milliseconds(), Members: b.Members, HasEvents: b.Listed,
		State: b.State(), Incomplete: append([]string{}, b.Incomplete...), Standings: []standing{},
		Refilling: []refillingPartition{}, Stalled: b.Stalled(),
		NotBegun: append([]string{}, b.NotBegun...),
	}
	if b.Revision > 0 {
		r.Revision = new(b.Revision)
	}
	asOf := b.Beside.Now
	if b.Archived {
		asOf = b.AsOf
	}
	if !asOf.IsZero() {
		r.AsOf = new(units.TimeMS(asOf.UnixMilli()))
	}
	if b.Lost != "" {
		r.Lost = &b.Lost
	}
	if b.LostOn != "" {
		r.LostShard = &b.LostOn
	}
	if shards {
		r.Shards = ledgersOf(b)
	}
	for _, p := range b.Refilling {
		r.Refilling = append(r.Refilling, refillingPartition{p.Field, b.Beside.Ledger[p.Field], p.To})
	}
	if b.Lag.Known {
		r.Lag, r.BehindMS = &b.Lag.Records, new(b.Behind.Milliseconds())
		r.ReportedAt = new(units.TimeMS(b.ReportedAt.UnixMilli()))
	}
	for _, st := range b.Standings {
		row := standing{Member: st.Member}
		if st.Name != "" {
			row.Name = &st.Name
		}
		if st.Rank > 0 {
			row.Rank, row.ReachedAt = &st.Rank, new(units.TimeMS(st.ReachedAt.UnixMilli()))
			if row.Fields = fields.Of(b.Fields, st.Tuple); row.Fields == nil {
				row.Points = &st.Points
			}
		}
		r.Standings = append(r.Standings, row)
	}
	return r
}

// ledgersOf returns the ledgers of all shards, also if there is only one.
func ledgersOf(b *board) []shardLedger {
	states := b.Shards
	if len(states) == 0 {
		states = []ledger.State{b.Beside}
	}
	var all []shardLedger
	for i, st := range states {
		all = append(all, shardLedger{i, units.TimeMS(st.Now.UnixMilli()), st.Ledger})
	}
	return all
}
