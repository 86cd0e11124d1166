package explain

// This file adds up a member's events: which of them count according to the ledger, and the tuple and time
// that the board's rule makes of them.

import (
	"cmp"
	"slices"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/event"
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
	layout codec.TupleLayout
	ruled  bool // the board has a rule other than the default
	erased bool // the member is erased
	limit  int  // 0: all events are kept

	counts  counts
	entries []entry
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
	if t.events++; t.events == 1 {
		t.value = v
		return
	}
	t.value = r.Merge(t.value, v)
}

// add adds an event of the member from a partition.
func (a *account) add(e *entry, from *source) {
	e.partition = from.Partition
	if e.result == counted {
		a.apply(e, from)
	}
	*a.counts.of(e.result)++
	if refused := e.result == deadLetter && e.readable; refused || e.result == counted {
		v := a.value(e)
		a.whole.add(&a.rule, v)
		if refused {
			a.refused++
			if e.reason == string(event.TooLarge) {
				a.unreadThen++
			}
		} else {
			a.total.add(&a.rule, v)
		}
	}
	a.entries = append(a.entries, *e)
	if a.limit > 0 && len(a.entries) >= 2*a.limit {
		a.latest()
	}
}

// apply changes the result of a counted event according to the ledger, the seals, the origins and the bans.
func (a *account) apply(e *entry, from *source) {
	why, refused := from.refusedAs(e.offset)
	switch {
	case !from.has(e.offset, a.hash):
		e.result = notApplied
	case from.finalFor(e.offset, a.hash):
		e.result = final
	case e.offset < from.began.Offset && a.window.Start < from.began.Time:
		e.result = notBegun
	case refused:
		e.result, e.reason, e.message = deadLetter, why.Reason, why.Message
	case a.erased:
		e.result = erased
	}
}

// value returns what an event adds. The rule last compares times in ticks, so its time is cut to the tick.
func (a *account) value(e *entry) boardrules.Value {
	at := e.time
	if a.rule.Score == boardrules.Last {
		at = boardrules.Cut(a.window.Start, a.window.End, a.layout.Tick, at)
	}
	return a.rule.Value(&e.tuple, at)
}

// latest sorts the entries by time and drops the earliest beyond limit.
func (a *account) latest() {
	slices.SortFunc(a.entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.when(), y.when()), x.partition.Compare(y.partition), cmp.Compare(x.offset, y.offset))
	})
	if n := len(a.entries) - a.limit; a.limit > 0 && n > 0 {
		a.entries = slices.Delete(a.entries, 0, n)
	}
}

// leftOut returns the number of events that were dropped from entries.
func (a *account) leftOut() int64 {
	c := &a.counts
	return c.Counted + c.Late + c.Final + c.Early + c.Duplicates + c.DeadLetters + c.NotApplied + c.BeforeStart + c.Erased - int64(len(a.entries))
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
	if a.ruled {
		st.Tuple = put.Tuple
	} else {
		st.Points = put.Tuple[0]
	}
	return st, true
}

// same reports whether a total is equal to the standing in Redis.
func (a *account) same(t *total, held *ranking.Standing) bool {
	st, ok := a.standing(t)
	switch {
	case !ok:
		return false
	case st == nil || held == nil:
		return st == nil && held == nil
	}
	return st.Points == held.Points && st.Tuple == held.Tuple && st.ReachedAt.Equal(held.ReachedAt)
}

// recount treats the refused events as counted, because a rebuild has judged them again.
func (a *account) recount() {
	for i := range a.entries {
		if e := &a.entries[i]; e.result == deadLetter && e.readable {
			e.result, e.reason, e.message = counted, "", "refused at first, and counted by a rebuild"
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
	// sealed is the position at which the window was made final; nil if it is not final or the position is
	// unknown.
	sealed *ledger.Position
	// whileFinal holds the ranges of events that arrived while the window was final, before it was
	// reopened. They are not in the window.
	whileFinal []between

	logged
	refused map[int64]refusal
	passed  []passed // in order, each offset once
	sweep   *judge   // the judge for a sweep in progress under other rules; nil if there is none
}

// between denotes the events that the position to counts and the earlier position from does not.
type between struct{ from, to ledger.Position }

// finalFor reports whether the window was final when an event arrived, given the event's hash and offset.
func (s *source) finalFor(offset int64, hash uint64) bool {
	for _, p := range s.whileFinal {
		if in(p.to, offset, hash) && !in(p.from, offset, hash) {
			return true
		}
	}
	return s.sealed != nil && !in(*s.sealed, offset, hash)
}

// has reports whether the ledger counts an event, given its offset and hash.
func (s *source) has(offset int64, hash uint64) bool { return in(s.position, offset, hash) }

// in reports whether a position counts an event, given its offset and hash.
func in(p ledger.Position, offset int64, hash uint64) bool {
	return offset < p.From || offset < p.To && hash < p.Hash
}

// judgeOf returns the judge whose rules decided, or would decide, on an event with this hash and offset.
func (s *source) judgeOf(own *judge, offset int64, hash uint64) *judge {
	if s.sweep != nil && offset >= s.position.From && s.has(offset, hash) {
		return s.sweep
	}
	return own
}
