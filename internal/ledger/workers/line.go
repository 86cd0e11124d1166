package workers

// A worker's status line.

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// Line is the status line that a worker writes for `consumer status`. No decision depends on it.
type Line struct {
	// Written is when the line was written, by Redis's clock. Report sets it, and readers compute the
	// line's age from it. It is 0 in lines of older versions.
	Written int64 `json:"written,omitempty"` // Unix ms

	Owner  string    `json:"owner"`
	State  string    `json:"state"`            // running, waiting or halted
	Reason string    `json:"reason,omitempty"` // of health.HaltReasons or health.WaitReasons, or throttled
	What   string    `json:"what,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
	At     time.Time `json:"at"` // by the worker's own clock
	// RecordTime is the time of the latest record that the worker applied.
	RecordTime time.Time `json:"record_time,omitzero"`
	Group      string    `json:"group,omitempty"` // its consumer group
	// Lag is the number of records that the ledger is behind the log, nil if unknown. Oldest is the time of
	// the oldest of them, zero if there is none.
	Lag    *int64    `json:"lag,omitempty"`
	Oldest time.Time `json:"oldest,omitzero"`
	Unread bool      `json:"unread,omitempty"` // none of them was read yet, so they may be older
	// OpenTransaction is a transaction that holds records back; nil if none is open.
	OpenTransaction *OpenTransaction `json:"open_transaction,omitempty"`
	// Duplicates is the number of records that the worker remembers to detect duplicates. DuplicatesSince
	// is approximately the record time of the earliest of them.
	Duplicates      int64     `json:"duplicates,omitempty"`
	DuplicatesSince time.Time `json:"duplicates_since,omitzero"`
	// TimeZoneData is the version of the worker's time zone data.
	TimeZoneData string `json:"time_zone_data,omitempty"`
}

// TimeZoneData returns the versions of the time zone data in lines that aren't stale, sorted and without
// repeats.
func TimeZoneData(st *ledger.State) []string {
	var all []string
	for _, text := range st.Workers {
		if line, ok := parseLine(text); ok && line.TimeZoneData != "" && st.Now.Sub(line.Time()) <= StaleAfter {
			all = append(all, line.TimeZoneData)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Time returns when the line was written, as exactly as known.
func (l Line) Time() time.Time {
	if l.Written > 0 {
		return time.UnixMilli(l.Written).UTC()
	}
	return l.At
}

// States of a worker.
const (
	StateRunning = "running"
	StateWaiting = "waiting"
	StateHalted  = "halted"
)

// ReportEvery is how often a worker writes its line, and the shortest wait that the line shows.
const ReportEvery = time.Second

// HaltTorn is the reason of a halt because a piece was written in part.
const HaltTorn = "torn"

// ReasonTransaction is the reason of a running worker if an open transaction holds records back.
const ReasonTransaction = "transaction"

// Text returns the line as it is written.
func (l Line) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and times only
	}
	return string(text)
}

// Lag is how far a partition is behind.
type Lag struct {
	Known   bool  // false until ledger and log were read
	Records int64 // offsets; transactions and compaction leave gaps in them
	// Since is the time of the oldest record that isn't counted, zero if all are counted. Until that record
	// is read, it is the time since which an uncounted record exists. Unread reports that no record was
	// read since the position was found.
	Since  time.Time
	Unread bool
	// Open is the transaction that holds back later records; nil if none is open.
	Open *OpenTransaction
}

// OpenTransaction is a transaction that is neither committed nor aborted.
type OpenTransaction struct {
	Offset int64     `json:"offset"` // offset of its first record
	Since  time.Time `json:"since"`  // when a consumer first saw it
}
