package top

// A board as JSON, for programs. Fields are never left out and never renamed; what
// isn't there is null.

import (
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/units"
)

type report struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Start    string `json:"start"` // RFC 3339 with ms, in UTC, like every time here
	End      string `json:"end"`   // exclusive
	TimeZone string `json:"time_zone"`
	TickMS   int64  `json:"tick_ms"` // how exact reached_at is
	Members  int64  `json:"members"`
	// Counted is false where nothing was ever counted, or the retention is over.
	Counted bool `json:"counted"`
	// State is lost, refilling, behind, incomplete, backup, not_counted or whole: of those that apply
	// the first.
	State string `json:"state"`
	// Revision is that of a final window, which nothing changes any more.
	Revision *int64 `json:"revision"`
	// Archived: it is the archive's copy of a window that Redis doesn't have, taken AsOf.
	Archived  bool                 `json:"archived"`
	AsOf      *string              `json:"as_of"`
	Lost      *string              `json:"lost"`                 // board_lost, board_unlisted, ledger_lost, schema or shard_lost
	LostShard *string              `json:"lost_shard,omitempty"` // of several shards the one that Lost is about
	Refilling []refillingPartition `json:"refilling"`            // partitions that are read again after Redis was lost
	// What follows is as the workers reported it last.
	Lag        *int64     `json:"lag"`         // records that don't count yet
	BehindMS   *int64     `json:"behind_ms"`   // age of the oldest of them
	ReportedAt *string    `json:"reported_at"` // the earliest of the last reports
	Halted     []string   `json:"halted"`      // partitions
	Waiting    []string   `json:"waiting"`
	Unreported []string   `json:"unreported"` // whose worker hasn't reported for 30 s
	NotBegun   []string   `json:"not_begun"`  // topics of which nothing was read yet
	Incomplete []string   `json:"incomplete"` // partitions whose events are missing in part
	Standings  []standing `json:"standings"`
	// Shards are there if they are asked for.
	Shards []shardLedger `json:"shards,omitempty"`
}

// shardLedger is what counts in a shard's part of the board.
type shardLedger struct {
	Shard  int               `json:"shard"` // from 0
	At     string            `json:"at"`    // when it was read, by its server's clock
	Ledger map[string]string `json:"ledger"`
}

type refillingPartition struct {
	Partition string `json:"partition"`
	Position  string `json:"position"`
	Until     int64  `json:"until"` // the log's end when the loss was found
}

type standing struct {
	Rank      *int64  `json:"rank"` // from 1; null, like what follows, for a member who isn't there
	Member    string  `json:"member"`
	Name      *string `json:"name,omitempty"` // there where members have names
	Points    *int64  `json:"points"`         // null also on a board by another rule, which has Fields
	ReachedAt *string `json:"reached_at"`

	Fields *fields.Values `json:"fields,omitempty"`
}

func reportOf(b *board, zone string, shards bool) report {
	r := report{
		Board: b.Name, Period: string(b.Window.Period), Window: b.Window.Name,
		Start: units.TimeMS(b.Window.Start), End: units.TimeMS(b.Window.End), TimeZone: zone,
		TickMS: b.Tick.Milliseconds(), Members: b.Members, Counted: b.Listed,
		State: b.State(), Incomplete: append([]string{}, b.Incomplete...), Standings: []standing{},
		Refilling: []refillingPartition{}, Halted: fieldsOf(b.Halted), Waiting: fieldsOf(b.Waiting), Unreported: fieldsOf(b.Silent),
		NotBegun: append([]string{}, b.NotBegun...),
	}
	if b.Revision > 0 {
		r.Revision = new(b.Revision)
	}
	if b.Archived {
		r.Archived, r.AsOf = true, new(units.TimeMS(b.AsOf.UnixMilli()))
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

// ledgersOf are those of all shards; of one shard there is one.
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

func fieldsOf(all []workers.Reported) []string {
	fields := []string{}
	for _, r := range all {
		fields = append(fields, r.Field)
	}
	return fields
}
