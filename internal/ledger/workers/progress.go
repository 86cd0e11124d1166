// Package workers says how far the boards are: by the ledger, and by the lines that workers have
// written about themselves last. It is pure.
package workers

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// StaleAfter is how old a line is whose worker has stopped reporting.
const StaleAfter = 3 * ReportEvery

// behindAfter is how old the oldest record that does not count may be, as of a report, before the boards are behind:
// while events arrive all the time, some are always on their way.
const behindAfter = 2 * time.Second

// Progress is how far the boards are.
type Progress struct {
	Refilling []Refilling
	Halted    []Reported
	Waiting   []Reported
	// Silent are the partitions of which no worker has reported within StaleAfter.
	Silent []Reported
	// NotBegun are topics that the ledger has nothing of.
	NotBegun []string
	// Lag is the records of all partitions that don't count yet, as of their last reports;
	// Known where all have said so.
	Lag Lag
	// Behind is how old the oldest of them was. Unread: none of some partition was read yet, so it may be older.
	Behind time.Duration
	Unread bool
	// ReportedAt is the time of the earliest of the partitions' last reports, by the state's clock. It is zero if no
	// partition has a report.
	ReportedAt time.Time
}

// Refilling is a partition that is read again after Redis was lost.
type Refilling struct {
	Field string
	From  int64 // every event before counts
	To    int64 // the log's end when the loss was found
}

// Reported is what a worker wrote last.
type Reported struct {
	Field string
	Line  Line          // zero where none did
	Age   time.Duration // of it
}

// CatchingUp reports whether the boards are behind by more than what is always under way.
func (p *Progress) CatchingUp() bool {
	return len(p.Halted)+len(p.Waiting)+len(p.Silent)+len(p.NotBegun) > 0 || p.Unread || p.Behind > behindAfter
}

// Left is how many records are to be read again.
func (p *Progress) Left() int64 {
	left := int64(0)
	for _, r := range p.Refilling {
		left += r.To - r.From
	}
	return left
}

// Of is how far the boards are by what stands beside them. Topics are those that
// are consumed.
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
		// A start that failed midway leaves a schema without a ledger.
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
		// Its worker finds that out with its next piece. Until then nobody is to take the boards for whole.
		r.Line.State, r.Line.Reason = StateHalted, HaltTorn
	}
	switch r.Line.State {
	case StateHalted:
		p.Halted = append(p.Halted, r)
	case StateWaiting:
		p.Waiting = append(p.Waiting, r)
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

// topicIn is the topic of a field of the ledger, empty of what is none.
func topicIn(field string) string {
	p, _ := ledger.ParsePartition(field)
	return p.Topic
}
