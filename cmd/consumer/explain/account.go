package explain

// What the events of a member come to: which of them count by where the ledger stands, and the
// tuple and time that they make together by the board's rule.

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

// counts are how many events there are of each result.
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

// account adds the events of a member up. Of the events themselves it keeps the latest alone.
type account struct {
	*question
	rule   boardrules.Rule
	layout codec.TupleLayout
	ruled  bool // the board is by another rule than the default one
	erased bool // nothing of the member is kept
	limit  int  // 0: all events are kept

	counts  counts
	entries []entry
	unread  int64 // records that can't be read so far as to say whose they are

	total   total // of the events that count
	whole   total // with those that were refused
	refused int64 // how many those are
	// unreadThen are those of refused that a consumer could not read.
	unreadThen int64
}

// total is what some events come to together.
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

// add takes an event of the member from a partition.
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

// apply is what becomes of an event by where the ledger stands.
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

// value is what an event adds. The time of last is told apart by ticks.
func (a *account) value(e *entry) boardrules.Value {
	at := e.time
	if a.rule.Score == boardrules.Last {
		at = boardrules.Cut(a.window.Start, a.window.End, a.layout.Tick, at)
	}
	return a.rule.Value(&e.tuple, at)
}

// latest sorts the entries by time and drops the earliest, so that no more are left than limit
// says.
func (a *account) latest() {
	slices.SortFunc(a.entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.when(), y.when()), x.partition.Compare(y.partition), cmp.Compare(x.offset, y.offset))
	})
	if n := len(a.entries) - a.limit; a.limit > 0 && n > 0 {
		a.entries = slices.Delete(a.entries, 0, n)
	}
}

// leftOut is how many events aren't kept.
func (a *account) leftOut() int64 {
	c := &a.counts
	return c.Counted + c.Late + c.Final + c.Early + c.Duplicates + c.DeadLetters + c.NotApplied + c.BeforeStart + c.Erased - int64(len(a.entries))
}

// standing is what a total is as Redis would have it, nil of no event. ok is false where a field
// would be out of its range: no standing has room for that.
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

// same reports whether a total is what Redis holds.
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

// recount takes the events that were refused as counted: a rebuild has judged them anew.
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

// source is a partition as it is read, and what Redis has of it.
type source struct {
	ledger.Partition
	text     string          // what the ledger of the member's shard has; empty where nothing
	position ledger.Position // which events that is
	began    ledger.Origin   // from where on the boards have it
	// sealed is which events were in as the window was made final; nil: it isn't, or that isn't known.
	sealed *ledger.Position
	// whileFinal are events that aren't in the window since they came while it was final, and it was reopened.
	whileFinal []between

	logged
	refused map[int64]refusal
	passed  []passed // in order, each offset once
	sweep   *judge   // of the sweep that is under way, by rules that aren't one's own; else nil
}

// between are the events that a position counts and an earlier one doesn't.
type between struct{ from, to ledger.Position }

// finalFor reports whether the window was final when the event of a hash at an offset came.
func (s *source) finalFor(offset int64, hash uint64) bool {
	for _, p := range s.whileFinal {
		if in(p.to, offset, hash) && !in(p.from, offset, hash) {
			return true
		}
	}
	return s.sealed != nil && !in(*s.sealed, offset, hash)
}

// has reports whether the events of a hash at an offset are in.
func (s *source) has(offset int64, hash uint64) bool { return in(s.position, offset, hash) }

// in reports whether a position counts the event of a hash at an offset.
func in(p ledger.Position, offset int64, hash uint64) bool {
	return offset < p.From || offset < p.To && hash < p.Hash
}

// judgeOf is by whose rules an event of a hash at an offset was counted, or would be.
func (s *source) judgeOf(own *judge, offset int64, hash uint64) *judge {
	if s.sweep != nil && offset >= s.position.From && s.has(offset, hash) {
		return s.sweep
	}
	return own
}
