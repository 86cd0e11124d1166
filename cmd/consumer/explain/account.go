package explain

// This file adds up a member's events: which of them count according to the ledger, and the tuple and time
// that the board's rule makes of them.

import (
	"cmp"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	boardrules "github.com/standings/standings/internal/rules"
)

// counts holds the number of events per result.
type counts struct {
	Counted     int64 `json:"counted"`
	Late        int64 `json:"late"`
	Final       int64 `json:"final"`
	Early       int64 `json:"early"`
	Duplicates  int64 `json:"duplicates"`
	DeadLetters int64 `json:"dead_letters"`
	NotApplied  int64 `json:"not_applied"`
	BeforeStart int64 `json:"before_start"`
	Erased      int64 `json:"erased"`
}

func (c *counts) of(r result) *int64 {
	return map[result]*int64{
		counted: &c.Counted, late: &c.Late, final: &c.Final, early: &c.Early, duplicate: &c.Duplicates, deadLetter: &c.DeadLetters,
		notApplied: &c.NotApplied, notBegun: &c.BeforeStart, erased: &c.Erased,
	}[r]
}

// account adds up the events of a member. It keeps only the latest events themselves.
type account struct {
	*question
	rule   boardrules.Rule
	fields codec.Fields // of a rule other than the default; the default one has points
	layout codec.TupleLayout
	erased bool // the member is erased
	limit  int  // 0: all events are kept

	counts  counts
	entries []entry
	leftOut int64 // events that were dropped from entries
	unread  int64 // records that cannot be read well enough to tell whose they are

	total   total // the events that count
	whole   total // the events that count and the refused ones
	refused int64 // number of refused events
	// unreadThen is the number of refused events that a consumer could not read.
	unreadThen int64
}

// total is the merged value of some events.
type total struct {
	events int64
	value  boardrules.Value
}

func (t *total) add(r *boardrules.Rule, v boardrules.Value) {
	if t.events++; t.events > 1 {
		v = r.Merge(t.value, v)
	}
	t.value = v
}

// add adds an event of the member from a partition.
func (a *account) add(e *entry, from *source) {
	e.Partition = from.String()
	if e.Result == counted {
		a.apply(e, from)
	}
	*a.counts.of(e.Result)++
	if e.readable {
		if e.Fields = fields.Of(a.fields, e.tuple); e.Fields == nil {
			e.Points = &e.tuple[0]
		}
	}
	if refused := e.Result == deadLetter && e.readable; refused || e.Result == counted {
		v := a.value(e)
		a.whole.add(&a.rule, v)
		if !refused {
			a.total.add(&a.rule, v)
		} else if a.refused++; string(e.Reason) == string(event.TooLarge) {
			a.unreadThen++
		}
	}
	a.entries = append(a.entries, *e)
	if a.limit > 0 && len(a.entries) >= 2*a.limit {
		a.latest()
	}
}

// apply changes the result of a counted event according to the ledger, the seals, the origins and the bans.
func (a *account) apply(e *entry, from *source) {
	refused := slices.IndexFunc(from.refused, func(r refusal) bool { return e.Offset >= r.first && e.Offset <= r.last })
	switch {
	case !in(from.position, e.Offset, a.hash):
		e.Result = notApplied
	case from.finalFor(e.Offset, a.hash):
		e.Result = final
	case e.Offset < from.began.Offset && a.window.Start < from.began.Time:
		e.Result = notBegun
	case refused >= 0:
		e.Result, e.Reason, e.Message = deadLetter, from.refused[refused].reason, from.refused[refused].message
	case a.erased:
		e.Result = erased
	}
}

// value returns what an event adds. The rule last compares times in ticks, so its time is cut to the tick.
func (a *account) value(e *entry) boardrules.Value {
	at := int64(e.Time)
	if a.rule.Score == boardrules.Last {
		at = boardrules.Cut(a.window.Start, a.window.End, a.layout.Tick, at)
	}
	return a.rule.Value(&e.tuple, at)
}

// latest sorts the entries by time, then by partition and offset, the order in which they came. It drops the
// earliest beyond limit.
func (a *account) latest() {
	slices.SortStableFunc(a.entries, func(x, y entry) int { return cmp.Compare(x.when(), y.when()) })
	if n := len(a.entries) - a.limit; a.limit > 0 && n > 0 {
		a.entries = slices.Delete(a.entries, 0, n)
		a.leftOut += int64(n)
	}
}

// standing converts a total into a standing as Redis would hold it; nil if there are no events. ok is false
// if a field would be out of range, which no standing can hold.
func (a *account) standing(t *total) (st *ranking.Standing, ok bool) {
	if t.events == 0 {
		return nil, true
	}
	w := a.window
	put, ok := a.rule.Put(nil, t.value.Packed, a.layout.Ticks(w.Start, w.End, t.value.Time))
	if !ok {
		return nil, false
	}
	st = &ranking.Standing{Member: a.member, ReachedAt: time.UnixMilli(a.layout.Time(w.Start, w.End, put.Ticks)).UTC()}
	if a.fields.Len() > 0 {
		st.Tuple = put.Tuple
	} else {
		st.Points = put.Tuple[0]
	}
	return st, true
}

// same reports whether a total is equal to the standing in Redis.
func (a *account) same(t *total, held *ranking.Standing) bool {
	st, ok := a.standing(t)
	if !ok || st == nil || held == nil {
		return ok && st == nil && held == nil
	}
	return st.Points == held.Points && st.Tuple == held.Tuple && st.ReachedAt.Equal(held.ReachedAt)
}

// recount treats the refused events as counted, because a rebuild has judged them again.
func (a *account) recount() {
	for i := range a.entries {
		if e := &a.entries[i]; e.Result == deadLetter && e.readable {
			e.Result, e.Reason, e.Message = counted, "", "refused at first, and counted by a rebuild"
		}
	}
	a.counts.Counted += a.refused
	a.counts.DeadLetters -= a.refused
	a.total, a.refused, a.unreadThen = a.whole, 0, 0
}

// source is a partition of the log, with Redis's state of it.
type source struct {
	ledger.Partition
	text     string          // the ledger's text in the member's shard; empty if there is none
	position ledger.Position // the events that text counts
	began    ledger.Origin   // the offset from which the boards count this partition
	// passed holds the ranges of events that arrived while the window was final. They are not in the window.
	passed  []between
	refused []refusal

	log  kafkaconn.Log
	from int64 // the first remaining offset that can hold an event of the window
	gone bool  // events of the window may have been deleted before from, or during the reading
	// missing explains why the partition cannot be read: Kafka does not have it, or this user may not read it.
	missing string
}

// refusal is the reason why the events at the offsets [first, last] were refused.
type refusal struct {
	first, last     int64
	reason, message cli.OptionalText
}

// between denotes the events that the position to counts and the earlier position from does not.
type between struct{ from, to ledger.Position }

// finalFor reports whether the window was final when an event arrived, given the event's hash and offset.
func (s *source) finalFor(offset int64, hash uint64) bool {
	return slices.ContainsFunc(s.passed, func(p between) bool { return in(p.to, offset, hash) && !in(p.from, offset, hash) })
}

// in reports whether a position counts an event, given its offset and hash.
func in(p ledger.Position, offset int64, hash uint64) bool {
	return offset < p.From || offset < p.To && hash < p.Hash
}
