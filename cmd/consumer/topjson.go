package main

// A board as JSON, for programs. Fields are never left out and never renamed; what
// isn't there is null.

import (
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
)

type boardReport struct {
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
	// State is lost, refilling, behind, incomplete, not_counted or whole: of those that apply
	// the first.
	State     string            `json:"state"`
	Lost      *string           `json:"lost"`      // board_lost, board_unlisted, ledger_lost or schema
	Refilling []refillingReport `json:"refilling"` // partitions that are read again after Redis was lost
	// What follows is as the workers reported it last.
	Lag        *int64           `json:"lag"`         // records that don't count yet
	BehindMS   *int64           `json:"behind_ms"`   // age of the oldest of them
	ReportedAt *string          `json:"reported_at"` // the earliest of the last reports
	Halted     []string         `json:"halted"`      // partitions
	Waiting    []string         `json:"waiting"`
	Unreported []string         `json:"unreported"` // whose worker hasn't reported for 30 s
	NotBegun   []string         `json:"not_begun"`  // topics of which nothing was read yet
	Incomplete []string         `json:"incomplete"` // partitions whose events are missing in part
	Standings  []standingReport `json:"standings"`
}

type refillingReport struct {
	Partition string `json:"partition"`
	Position  string `json:"position"`
	Until     int64  `json:"until"` // the log's end when the loss was found
}

type standingReport struct {
	Rank      *int64  `json:"rank"` // from 1; null, like what follows, for a member who isn't there
	Member    string  `json:"member"`
	Points    *int64  `json:"points"`
	ReachedAt *string `json:"reached_at"`
}

func reportBoard(b *shownBoard, zone string) boardReport {
	r := boardReport{
		Board: b.Name, Period: string(b.Window.Period), Window: b.Window.Name,
		Start: units.TimeMS(b.Window.Start), End: units.TimeMS(b.Window.End), TimeZone: zone,
		TickMS: b.Tick.Milliseconds(), Members: b.Members, Counted: b.Listed,
		State: b.state(), Incomplete: append([]string{}, b.Incomplete...), Standings: []standingReport{},
		Refilling: []refillingReport{}, Halted: fieldsOf(b.Halted), Waiting: fieldsOf(b.Waiting), Unreported: fieldsOf(b.Silent),
		NotBegun: append([]string{}, b.NotBegun...),
	}
	if b.Lost != "" {
		r.Lost = &b.Lost
	}
	for _, p := range b.Refilling {
		r.Refilling = append(r.Refilling, refillingReport{p.Field, b.Beside.Ledger[p.Field], p.To})
	}
	if b.Lag.Known {
		behind, at := b.Behind.Milliseconds(), units.TimeMS(b.Beside.Now.Add(-b.Reported).UnixMilli())
		r.Lag, r.BehindMS, r.ReportedAt = &b.Lag.Records, &behind, &at
	}
	for _, st := range b.Standings {
		row := standingReport{Member: st.Member}
		if st.Rank > 0 {
			at := units.TimeMS(st.ReachedAt.UnixMilli())
			row.Rank, row.Points, row.ReachedAt = &st.Rank, &st.Points, &at
		}
		r.Standings = append(r.Standings, row)
	}
	return r
}

func fieldsOf(all []ingest.Reported) []string {
	fields := []string{}
	for _, r := range all {
		fields = append(fields, r.Field)
	}
	return fields
}
