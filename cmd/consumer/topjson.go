package main

// A board as JSON, for programs. Fields are never left out and never renamed; what
// isn't there is null.

import (
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
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
	Counted    bool             `json:"counted"`
	Incomplete []string         `json:"incomplete"` // partitions whose events are missing in part
	Standings  []standingReport `json:"standings"`
}

type standingReport struct {
	Rank      *int64  `json:"rank"` // from 1; null, like what follows, for a member who isn't there
	Member    string  `json:"member"`
	Points    *int64  `json:"points"`
	ReachedAt *string `json:"reached_at"`
}

func reportBoard(b ranking.Board, zone string) boardReport {
	r := boardReport{
		Board: b.Name, Period: string(b.Window.Period), Window: b.Window.Name,
		Start: units.TimeMS(b.Window.Start), End: units.TimeMS(b.Window.End), TimeZone: zone,
		TickMS: b.Tick.Milliseconds(), Members: b.Members, Counted: b.Listed,
		Incomplete: append([]string{}, b.Incomplete...), Standings: []standingReport{},
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
