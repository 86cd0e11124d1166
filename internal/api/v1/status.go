package v1

// What every answer about a window states: which window it shows, as of which time and ledger, and whether the
// window is complete.

import (
	"time"

	"github.com/standings/standings/internal/reading"
)

// timeFormat is RFC 3339 with milliseconds, in UTC.
const timeFormat = "2006-01-02T15:04:05.000Z"

func timeMS(ms int64) string { return string(appendTimeMS(make([]byte, 0, len(timeFormat)), ms)) }

const dayMS = 24 * 60 * 60 * 1000

// appendTimeMS appends a time in timeFormat. It formats the digits itself for speed: a page has as many times as
// rows.
func appendTimeMS(to []byte, ms int64) []byte {
	of := ((ms % dayMS) + dayMS) % dayMS
	year, month, day := time.UnixMilli(ms).UTC().Date()
	if year < 0 || year > 9999 {
		return time.UnixMilli(ms).UTC().AppendFormat(to, timeFormat)
	}
	to = append(digits(digits(to, int64(year/100), 2), int64(year%100), 2), '-')
	to = append(digits(to, int64(month), 2), '-')
	to = append(digits(to, int64(day), 2), 'T')
	to = append(digits(to, of/3_600_000, 2), ':')
	to = append(digits(to, of/60_000%60, 2), ':')
	to = append(digits(to, of/1000%60, 2), '.')
	return append(digits(to, of%1000, 3), 'Z')
}

// digits appends n with many digits, padded with zeros.
func digits(to []byte, n int64, many int) []byte {
	for place := many - 1; place >= 0; place-- {
		d := n
		for range place {
			d /= 10
		}
		to = append(to, byte('0'+d%10))
	}
	return to
}

// windowAnswer is a window of a board.
type windowAnswer struct {
	Board       string `json:"board"`
	Period      string `json:"period"`
	Window      string `json:"window"`
	Start       string `json:"start"`
	End         string `json:"end"`          // exclusive
	SecondsLeft int64  `json:"seconds_left"` // until its end; 0 after that
	TimeZone    string `json:"time_zone"`
	TickMS      int64  `json:"tick_ms"` // the precision of reached_at
	// Fields are the fields of a board with its own rule, most significant first.
	Fields    []string `json:"fields,omitempty"`
	Members   int64    `json:"members"`
	HasEvents bool     `json:"has_events"` // false: no event has counted yet, or the retention is over
}

func windowOf(v *reading.View) windowAnswer {
	w := v.Window
	left := int64(0)
	if now := v.Beside.Now; !now.IsZero() {
		left = max(0, (w.End-now.UnixMilli()+999)/1000)
	}
	a := windowAnswer{
		Board: v.Name, Period: string(w.Period), Window: w.Name, Start: timeMS(w.Start), End: timeMS(w.End), SecondsLeft: left,
		TimeZone: v.Target.Period.Zone, TickMS: v.Tick.Milliseconds(), Members: v.Members, HasEvents: v.Listed,
	}
	for _, f := range v.Fields.List() {
		a.Fields = append(a.Fields, f.Name)
	}
	return a
}

// status describes how current and complete an answer is.
type status struct {
	State string `json:"state"`
	// AsOf is the time of the read, by Redis's clock, or when the archive's copy was taken; null if Redis has no
	// standings.
	AsOf       *string `json:"as_of"`
	ReportedAt *string `json:"reported_at"` // the earliest of the consumers' last reports; null if there are none
	// Lag is the number of records that are not counted yet, by the consumers' last reports; null if a report is
	// missing.
	Lag      *int64 `json:"lag"`
	BehindMS *int64 `json:"behind_ms"` // age of the oldest of these records
	// Complete is false if records of the window were deleted before they were counted.
	Complete bool `json:"complete"`
	// Final is true once no event can change the window any more.
	Final bool `json:"final"`
	// Revision is the number of times that the window became final. A reopening makes it not final; the next
	// sealing increments the revision.
	Revision   int64                      `json:"revision,omitempty"`
	Stalled    []reading.StalledPartition `json:"stalled_partitions"` // partitions whose events do not count now
	Incomplete []string                   `json:"incomplete"`         // partitions with missing records
	// Ledger has the position of each partition: with several shards, the lowest of their positions.
	Ledger map[string]string `json:"ledger"`
	// Shards has an entry per shard if there are several, each with its own instant.
	Shards []shardStatus `json:"shards,omitempty"`
	// Reached reports whether the event of min_offset counts; present only if requested.
	Reached *bool `json:"reached,omitempty"`
}

type shardStatus struct {
	Shard  int               `json:"shard"`
	AsOf   string            `json:"as_of"`
	Ledger map[string]string `json:"ledger"`
}

func statusOf(v *reading.View, reached *waited) status {
	s := status{
		State: v.State(), Complete: v.Complete(), Final: v.Revision > 0, Revision: v.Revision,
		Stalled: v.Stalled(), Incomplete: append([]string{}, v.Incomplete...), Ledger: v.Beside.Ledger,
	}
	if reached != nil {
		s.Reached = new(reached.ok && v.Reached(reached.until))
	}
	if s.Ledger == nil {
		s.Ledger = map[string]string{}
	}
	asOf := v.Beside.Now
	if v.Archived {
		asOf = v.AsOf
	}
	if !asOf.IsZero() {
		s.AsOf = new(timeMS(asOf.UnixMilli()))
	}
	if v.Lag.Known {
		s.Lag, s.BehindMS = new(v.Lag.Records), new(v.Behind.Milliseconds())
	}
	if at := v.ReportedAt; !at.IsZero() {
		s.ReportedAt = new(timeMS(at.UnixMilli()))
	}
	for i, shard := range v.Shards {
		s.Shards = append(s.Shards, shardStatus{i, timeMS(shard.Now.UnixMilli()), shard.Ledger})
	}
	return s
}

// unlessLost returns a view as it was read. If Redis has lost the window, that is the error: what Redis still has of
// it is not shown.
func unlessLost(v reading.View, err error) (reading.View, error) {
	if err != nil || v.Lost == "" {
		return v, err
	}
	where := ""
	if v.LostOn != "" {
		where = " in " + v.LostOn
	}
	return v, problemf(boardLost, "Redis has lost %s %s %s%s (%s). Rebuild it from the log", v.Name, v.Window.Period, v.Window.Name, where, v.Lost)
}
