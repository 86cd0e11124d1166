package workers

// What a worker reports of itself.

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// Line is what a worker writes about itself, for `consumer status`. Nothing is
// decided by it.
type Line struct {
	// Written is when it was written by the standings' clock, which all lines are aged by:
	// Report puts it in. 0 in those of older versions.
	Written int64 `json:"written,omitempty"` // Unix ms

	Owner  string    `json:"owner"`
	State  string    `json:"state"`            // running, waiting or halted
	Reason string    `json:"reason,omitempty"` // of health.HaltReasons or, where it waits, of health.WaitReasons; throttled where it runs so
	What   string    `json:"what,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
	At     time.Time `json:"at"` // by the worker's own clock
	// RecordTime is the time of the latest record that was swept.
	RecordTime time.Time `json:"record_time,omitzero"`
	Group      string    `json:"group,omitempty"` // the consumer group that it works in
	// Lag is how many records the ledger was behind the log, nil where that isn't known, and
	// Oldest the time of the oldest of them, zero without one.
	Lag    *int64    `json:"lag,omitempty"`
	Oldest time.Time `json:"oldest,omitzero"`
	Unread bool      `json:"unread,omitempty"` // none of them was read yet: they may be older
	// OpenTransaction is one that holds records back; nil if none is open.
	OpenTransaction *OpenTransaction `json:"open_transaction,omitempty"`
	// Duplicates is how many records are remembered to find duplicates by, and
	// DuplicatesSince about the record time of the earliest of them.
	Duplicates      int64     `json:"duplicates,omitempty"`
	DuplicatesSince time.Time `json:"duplicates_since,omitzero"`
	// TimeZoneData is the version of the worker's time zone data.
	TimeZoneData string `json:"time_zone_data,omitempty"`
}

// TimeZoneData are the versions of the time zone data of workers whose lines are not stale, each once,
// in ascending order.
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

// Time is when the line was written, as exactly as is known.
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

// ReportEvery is how often a worker's line is written, and how long a wait has to last until the line says so.
const ReportEvery = time.Second

// HaltTorn is the reason of a halt: a piece was written in part.
const HaltTorn = "torn"

// Text is the line as it is written.
func (l Line) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and times only
	}
	return string(text)
}

// Lag is how far a partition is behind.
type Lag struct {
	Known   bool  // false before ledger and log were looked at
	Records int64 // offsets, which transactions and compaction leave gaps in
	// Since is the time of the oldest record that doesn't count, zero without one. Before that record was
	// read it is the time since when there is one; Unread: none was read since the position was located.
	Since  time.Time
	Unread bool
	// Open is the transaction that holds back what follows it; nil if none is open.
	Open *OpenTransaction
}

// OpenTransaction is one that is neither committed nor aborted.
type OpenTransaction struct {
	Offset int64     `json:"offset"` // its first record
	Since  time.Time `json:"since"`  // when a consumer first saw it
}
