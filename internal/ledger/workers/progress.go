// Package workers computes how far the boards are, from the ledger and from the workers' latest status
// lines. It is pure.
package workers

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// StaleAfter is the age after which a line is stale: its worker has stopped reporting.
const StaleAfter = 3 * ReportEvery

// behindAfter is the age of the oldest uncounted record, at the time of a report, from which the boards
// count as behind. While events keep arriving, some are always uncounted.
const behindAfter = 2 * time.Second

// Progress is how far the boards are.
type Progress struct {
	Refilling []Refilling
	Halted    []Reported
	Waiting   []Reported
	// Blocked are the partitions in which an open transaction holds back the records behind it.
	Blocked []Reported
	// Silent are the partitions whose worker hasn't reported within StaleAfter.
	Silent []Reported
	// NotBegun are topics without any partition in the ledger.
	NotBegun []string
	// Lag is the sum over all partitions, from their latest lines. Known is set if all lines have a lag.
	Lag Lag
	// Behind is the age of the oldest uncounted record. With Unread, some partition has read none yet, so
	// it may be older.
	Behind time.Duration
	Unread bool
	// ReportedAt is the earliest time of the partitions' latest lines, by the state's clock; zero if no
	// partition has a line.
	ReportedAt time.Time
}

// Refilling is a partition that is read again after Redis was lost.
type Refilling struct {
	Field string
	From  int64 // every event before it counts
	To    int64 // the log's end when the loss was found
}

// Reported is a partition's latest line.
type Reported struct {
	Field string
	Line  Line          // zero if there is no line
	Age   time.Duration // of it
}

// CatchingUp reports whether the boards are behind by more than the events that are always in flight.
func (p *Progress) CatchingUp() bool {
	return len(p.Halted)+len(p.Waiting)+len(p.Blocked)+len(p.Silent)+len(p.NotBegun) > 0 || p.Unread || p.Behind > behindAfter
}

// Left returns the number of records to be read again.
func (p *Progress) Left() int64 {
	left := int64(0)
	for _, r := range p.Refilling {
		left += r.To - r.From
	}
	return left
}

// Of computes the progress of a state. topics are the consumed topics.
func Of(st *ledger.State, topics []string) Progress { return progressOf(nil, st, topics) }

func progressOf(lines *Lines, st *ledger.State, topics []string) Progress {
	p := Progress{}
	for _, field := range slices.SortedFunc(maps.Keys(st.Refills), ledger.CompareFields) {
		text, begun := st.Ledger[field]
		at, err := ledger.Counted(text)
		if to := st.Refills[field]; begun && (err != nil || at.From < to) {
			p.Refilling = append(p.Refilling, Refilling{Field: field, From: at.From, To: to})
		}
	}
	p.Lag.Known = true
	for _, field := range slices.SortedFunc(maps.Keys(merge(st.Ledger, st.Workers)), ledger.CompareFields) {
		if slices.Contains(topics, topicIn(field)) {
			p.add(lines, field, st)
		}
	}
	for _, topic := range topics {
		begun := false
		for field := range st.Ledger {
			begun = begun || topicIn(field) == topic
		}
		// If a start failed midway, the schema exists without a ledger.
		if !begun && (len(st.Ledger) > 0 || st.Schema != "") {
			p.NotBegun = append(p.NotBegun, topic)
			p.Lag.Known = false
		}
	}
	if len(st.Ledger) == 0 {
		p.Lag.Known = false
	}
	if !p.Lag.Known {
		p.Lag, p.Behind = Lag{}, 0
	}
	return p
}

func (p *Progress) add(lines *Lines, field string, st *ledger.State) {
	r := Reported{Field: field}
	text, reported := st.Workers[field]
	if reported {
		r.Line, reported = lines.line(field, text)
	}
	if reported {
		at := r.Line.Time()
		r.Age = st.Now.Sub(at)
		if p.ReportedAt.IsZero() || at.Before(p.ReportedAt) {
			p.ReportedAt = at
		}
	}
	if !reported || r.Age > StaleAfter {
		p.Silent = append(p.Silent, r)
		p.Lag.Known = false
		return
	}
	if strings.HasPrefix(st.Ledger[field], ledger.TornMark) && r.Line.State != StateHalted {
		// The worker finds that out with its next piece. Until then readers mustn't treat the boards as
		// complete.
		r.Line.State, r.Line.Reason = StateHalted, HaltTorn
	}
	switch {
	case r.Line.State == StateHalted:
		p.Halted = append(p.Halted, r)
	case r.Line.State == StateWaiting:
		p.Waiting = append(p.Waiting, r)
	case r.Line.Reason == ReasonTransaction:
		p.Blocked = append(p.Blocked, r)
	}
	if r.Line.Lag == nil {
		p.Lag.Known, p.Unread = false, true
		return
	}
	p.Lag.Records += *r.Line.Lag
	p.Unread = p.Unread || r.Line.Unread
	if oldest := r.Line.Oldest; !oldest.IsZero() {
		if p.Lag.Since.IsZero() || oldest.Before(p.Lag.Since) {
			p.Lag.Since = oldest
		}
		p.Behind = max(p.Behind, r.Line.At.Sub(oldest))
	}
}

func merge(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

// topicIn returns the topic of a field of the ledger, "" if the field is invalid.
func topicIn(field string) string {
	p, _ := ledger.ParsePartition(field)
	return p.Topic
}
