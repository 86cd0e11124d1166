package fold

import (
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/standings/standings/internal/ingest/loaded"
	"github.com/standings/standings/internal/ledger"
)

// Counted knows which events of a partition count already in which windows, where the standings were
// loaded from a snapshot: those that the position denotes as of which the member's row in the window is.
// Events from Before on are denoted by none, and cost one comparison.
//
// An event counts in its other windows; where there are none, it is Repeated. It is safe for concurrent
// use.
type Counted struct {
	// Before is the offset from which on no event counts already.
	Before int64
	// Absent is, by shard of the snapshot, the position for whoever has no row. The snapshot may be of
	// another number of shards than the standings are.
	Absent []ledger.Position
	// Changes are where the partition's position is another than at the instant before, by the numbers of
	// instants, ascending. The first is of the first instant.
	Changes []Change
	Rows    *loaded.Rows

	missed atomic.Bool
}

// Change is a position from an instant on.
type Change struct {
	Since loaded.Instant
	At    ledger.Position
}

// position is that of an instant.
func (c *Counted) position(of loaded.Instant) ledger.Position {
	after := sort.Search(len(c.Changes), func(i int) bool { return c.Changes[i].Since > of })
	return c.Changes[after-1].At
}

// Missed reports whether an event came that Rows weren't made for: what it was counted in may be wrong.
func (c *Counted) Missed() bool { return c.missed.Load() }

// shard is the one of the snapshot that a member was of.
func (c *Counted) shard(hash uint64) int { return ledger.Shards(len(c.Absent)).Of(hash) }

// at is the position by which events of a member of a shard of the snapshot count already in a window.
func (c *Counted) at(shard int, key loaded.Key, window uint64) ledger.Position {
	is := loaded.Unknown
	if window != 0 {
		is = c.Rows.Instant(key, window)
	}
	if is >= 0 {
		return c.position(is)
	}
	if is == loaded.Unknown {
		c.missed.Store(true)
	}
	return c.Absent[shard]
}

// Without has the batch leave out what counts already.
func (b *Batch) Without(c *Counted) { b.counted, b.before = c, c.Before }

// none is an offset that none is before.
const none = math.MinInt64

// leaveOut folds an event of which something may count already: false where nothing does, and it isn't
// folded yet.
func (b *Batch) leaveOut(e *Event, span *span, taken uint32) (Result, bool) {
	some, all := b.targets.leave(b.counted, e, span, taken)
	switch {
	case all:
		return Repeated, true
	case !some:
		return 0, false
	}
	if e.Name != nil {
		if r := b.table.roomForName(e.User, e.Name); r != Added {
			return r, true
		}
	}
	r := b.addRest(e, span, taken)
	if r == Added && e.Name != nil {
		b.table.name(e.Name, e.Time)
	}
	return r, true
}

// addRest folds what is left of an event.
func (b *Batch) addRest(e *Event, span *span, taken uint32) Result {
	ts := &b.targets
	if e.Tuples != nil {
		ts.partial = true
		defer func() { ts.partial = false }()
		return b.addByRules(e, span, taken)
	}
	target, r := ts.rest(&b.table, span, taken, e.Boards, ts.left)
	switch {
	case r != Added:
		return r
	case target < 0:
		return Repeated
	}
	time := int64(ledger.NoTime)
	if e.Points > 0 {
		time = e.Time
	}
	return b.add(e.Hash, e.User, target, e.Points, time)
}

// leave works out, for each of an event's boards, in which of a span's windows it counts already: in
// some, or in all that would take it.
func (ts *targets) leave(c *Counted, e *Event, span *span, taken uint32) (some, all bool) {
	shard, key := c.shard(e.Hash), loaded.KeyOf(e.User)
	all, ts.left = true, ts.left[:0]
	for _, board := range e.Boards {
		takes, left := taken&ts.rules.periodsOf(string(board)), uint32(0)
		for i := range span.Windows {
			if takes&(1<<i) == 0 {
				continue
			}
			w := &span.Windows[i]
			if c.at(shard, key, c.Rows.Number(board, string(w.Period), w.Name)).Denotes(e.Offset, e.Hash) {
				left |= 1 << i
			}
		}
		some, all = some || left != 0, all && left == takes
		ts.left = append(ts.left, left)
	}
	return some, all
}

// rest returns the target of some boards of an event, without the windows in which it counts already,
// a bit each by board: -1 where none is left.
func (ts *targets) rest(t *table, span *span, taken uint32, boards [][]byte, left []uint32) (int32, Result) {
	set := ts.lookup[:0]
	for i, name := range boards {
		takes := taken & ts.rules.periodsOf(string(name)) &^ left[i]
		if takes == 0 {
			continue
		}
		board := string(name)
		for j, w := range span.Windows {
			if takes&(1<<j) == 0 || ts.final(board, span, j) {
				continue
			}
			n, r := ts.window(t, board, w)
			if r != Added {
				return 0, r
			}
			set = append(set, n)
		}
	}
	ts.lookup = set
	if len(set) == 0 {
		return -1, Added
	}
	slices.Sort(set)
	return ts.setFor(t, set)
}

// setFor is the number of a set of windows, which is charged for where it is new.
func (ts *targets) setFor(t *table, set []int32) (int32, Result) {
	ts.scratch = appendSet(ts.scratch[:0], set)
	if target, ok := ts.setOf[string(ts.scratch)]; ok {
		return target, Added
	}
	if r := t.take(int64(setBytes+8*len(set)) + ts.others*otherBytes + ts.ruleBytes()); r != Added {
		return 0, r
	}
	return ts.set(set), Added
}
