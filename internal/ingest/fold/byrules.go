package fold

import (
	"maps"
	"math"
	"slices"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	boardrules "github.com/standings/standings/internal/rules"
)

// Boards with rules other than the default one. For each rule, an event has one number and one time
// (rules.Value). An event on boards with several rules is therefore one change per rule, each with its own
// target: all windows of a target have the same rule. With the rule last, a time is rounded to the window's
// tick, so each window is its own target.
//
//    {board: [global, arena], points: 7, stage: 42}
//       ├▶ global's weekly, monthly, yearly   7 points
//       └▶ arena's weekly, monthly, yearly    stage 42, packed
//
// All changes of an event are added, or none.

// Board is a board's own rule and periods.
type Board struct {
	Rule *boardrules.Rule // nil: the default rule
	// Periods are the board's periods among Rules.Periods, one bit each.
	Periods uint32
	// Ticks are the ticks of the board's windows by period, in ms. Only the rule last uses them.
	Ticks map[periods.Period]int64
}

var usual = &Board{Periods: math.MaxUint32}

// of returns a board's own rule and periods, or the defaults.
func (r *Rules) of(board string) *Board {
	if b, ok := r.Boards[board]; ok {
		return b
	}
	if b, ok := r.Boards[boardrules.AnyBoard]; ok {
		return b
	}
	return usual
}

// periodsOf returns a board's periods, one bit each.
func (r *Rules) periodsOf(board string) uint32 {
	if r.Boards == nil {
		return math.MaxUint32
	}
	return r.of(board).Periods
}

// PeriodsOf returns the periods that at least one of the boards has, one bit each of Periods.
func (r *Rules) PeriodsOf(boards [][]byte) uint32 {
	if r.Boards == nil {
		return math.MaxUint32
	}
	bits := uint32(0)
	for _, name := range boards {
		if b, ok := r.Boards[string(name)]; ok {
			bits |= b.Periods
			continue
		}
		bits |= r.of("").Periods
	}
	return bits
}

// With returns the rules plus the additional periods of others, on each board whose rule is the same in both.
func (r *Rules) With(others *Rules) Rules {
	all := *r
	all.Periods = slices.Clone(r.Periods)
	at := make([]int, len(others.Periods)) // indexes in all.Periods
	for i, p := range others.Periods {
		at[i] = slices.IndexFunc(r.Periods, func(q Period) bool { return q.Rule.Name() == p.Rule.Name() })
		if at[i] < 0 {
			at[i], all.Periods = len(all.Periods), append(all.Periods, p)
		}
	}
	if r.Boards == nil && others.Boards == nil {
		return all
	}
	all.Boards = map[string]*Board{}
	for _, boards := range []map[string]*Board{r.Boards, others.Boards} {
		for name := range boards {
			all.Boards[name] = r.of(name).with(others.of(name), len(r.Periods), at)
		}
	}
	if all.Boards[boardrules.AnyBoard] == nil {
		all.Boards[boardrules.AnyBoard] = r.of(boardrules.AnyBoard).with(others.of(boardrules.AnyBoard), len(r.Periods), at)
	}
	return all
}

// with returns the board plus the additional periods of other. The board has the first n of all periods; at
// maps the other's periods to their numbers among all periods.
func (b *Board) with(other *Board, n int, at []int) *Board {
	all := *b
	all.Periods &= uint32(1<<n - 1)
	all.Ticks = maps.Clone(b.Ticks)
	if (b.Rule == nil) != (other.Rule == nil) || b.Rule != nil && *b.Rule != *other.Rule {
		return &all
	}
	for i, number := range at {
		if other.Periods&(1<<i) != 0 {
			all.Periods |= 1 << number
		}
	}
	for name, tick := range other.Ticks {
		if _, ok := all.Ticks[name]; !ok {
			if all.Ticks == nil {
				all.Ticks = map[periods.Period]int64{}
			}
			all.Ticks[name] = tick
		}
	}
	return &all
}

// byRules is the part of targets for boards with other rules. Rules are numbered; 0 is the default rule.
type byRules struct {
	rules   []*boardrules.Rule
	windows []int32 // the rule of each window
	sets    []int32 // the rule of each set
	parts   []part
	some    [][]byte
}

// numbered numbers the different rules of the boards.
func numbered(r *Rules) byRules {
	b := byRules{rules: []*boardrules.Rule{nil}}
	for _, name := range slices.Sorted(maps.Keys(r.Boards)) {
		if rule := r.Boards[name].Rule; !slices.Contains(b.rules, rule) {
			b.rules = append(b.rules, rule)
		}
	}
	return b
}

func (b *byRules) reset() { b.windows, b.sets = emptied(b.windows), emptied(b.sets) }

func (b *byRules) number(rule *boardrules.Rule) int32 {
	return int32(slices.Index(b.rules, rule))
}

// ofSet returns the rule that all windows of a set have.
func (b *byRules) ofSet(windows []int32) int32 {
	if len(windows) == 0 {
		return 0
	}
	return b.windows[windows[0]]
}

const ruleBytes = 4 // for each window and each set

// ruleBytes returns the bytes that the rule of a window or a set takes: 0 if no board has a rule of its own.
func (ts *targets) ruleBytes() int64 {
	if ts.rules.Boards == nil {
		return 0
	}
	return ruleBytes
}

// windowRule returns the number of a window's rule.
func (ts *targets) windowRule(w int32) int32 {
	if ts.rules.Boards == nil {
		return 0
	}
	return ts.byRules.windows[w]
}

// merge combines two changes into one by a rule.
func (ts *targets) merge(rule int32, points, time, more, at int64) (int64, int64) {
	if rule == 0 {
		return addPoints(points, more), later(time, at)
	}
	v := ts.byRules.rules[rule].Merge(boardrules.Value{Packed: points, Time: time}, boardrules.Value{Packed: more, Time: at})
	return v.Packed, v.Time
}

// part is one change of an event.
type part struct {
	target int32
	points int64
	time   int64
}

// addByRules folds an event that has a board with another rule.
func (b *Batch) addByRules(e *Event, span *span, taken uint32) Result {
	parts, r := b.targets.partsOf(&b.table, e, span, taken)
	if r != Added {
		return r
	}
	t := &b.table
	f := t.find(e.Hash, e.User)
	width, missing := 0, 0
	for i := range parts {
		if f.at < 0 || b.changeOf(f.at, parts[i].target) == absent {
			width += b.targets.width(parts[i].target)
			missing++
		}
	}
	if missing > 0 && (f.at >= 0 || f.alike) && !b.fits(e.Hash, *f.head, width) {
		return Full
	}
	if f.at < 0 {
		if r := t.reserve(missing - 1); r != Added {
			return r
		}
		first := parts[0]
		if r := t.insert(f, e.Hash, e.User, first.target, first.points, first.time); r != Added {
			return r
		}
		for _, p := range parts[1:] {
			t.link(t.count-1, p.target, p.points, p.time)
		}
		return Added
	}
	if t.member(f.at).events == math.MaxUint32 {
		return Full
	}
	t.last = f.at
	if r := t.reserve(missing); r != Added {
		return r
	}
	for _, p := range parts {
		b.change(f.at, p)
	}
	t.member(f.at).events++
	return Added
}

// The place of a member's change for a target: absent, first, or the index of a further change.
const (
	absent = -2
	first  = -1 // the change stored in the member itself
)

func (b *Batch) changeOf(at int, target int32) int {
	m := b.table.member(at)
	if m.target == target {
		return first
	}
	for i := m.more; i != 0; {
		c := b.table.change(int(i - 1))
		if c.target == target {
			return int(i - 1)
		}
		i = c.next
	}
	return absent
}

// change merges a part into the member's change of the same target, or adds a change. The caller has reserved
// room for it.
func (b *Batch) change(at int, p part) {
	rule := b.targets.byRules.sets[p.target]
	switch i := b.changeOf(at, p.target); i {
	case absent:
		b.table.link(at, p.target, p.points, p.time)
	case first:
		m := b.table.member(at)
		m.points, m.time = b.targets.merge(rule, m.points, m.time, p.points, p.time)
	default:
		c := b.table.change(i)
		c.points, c.time = b.targets.merge(rule, c.points, c.time, p.points, p.time)
	}
}

// partsOf returns an event's changes, each with another target. There is at least one, because a window takes
// the event.
func (ts *targets) partsOf(t *table, e *Event, span *span, taken uint32) ([]part, Result) {
	by := &ts.byRules
	by.parts = by.parts[:0]
	for n, rule := range by.rules {
		by.some = by.some[:0]
		tuple := boardrules.Tuple{}
		for i, name := range e.Boards {
			board := ts.rules.of(string(name))
			if board.Rule != rule {
				continue
			}
			tuple = e.Tuples[i]
			if rule != nil && rule.Score == boardrules.Last {
				if r := ts.lastParts(t, int32(n), board, string(name), &tuple, e.Time, span, taken); r != Added {
					return nil, r
				}
			} else if takes := taken & board.Periods; takes != 0 && (takes&span.sealed == 0 || !ts.over(e.Boards[i:i+1], span, takes)) {
				by.some = append(by.some, name)
			}
		}
		if len(by.some) == 0 {
			continue
		}
		target, r := ts.of(t, span, taken, by.some)
		if r != Added {
			return nil, r
		}
		value := boardrules.Value{Packed: e.Points, Time: ledger.NoTime}
		if rule != nil {
			value = rule.Value(&tuple, e.Time)
		} else if e.Points > 0 {
			value.Time = e.Time
		}
		by.parts = append(by.parts, part{target, value.Packed, value.Time})
	}
	clear(by.some) // do not keep the event's memory alive
	return by.parts, Added
}

// lastParts adds the changes of a board with the rule last: one for each window, because times are rounded to
// the window's tick.
func (ts *targets) lastParts(t *table, rule int32, board *Board, name string, tuple *boardrules.Tuple, at int64, span *span, taken uint32) Result {
	by := &ts.byRules
	for i := range span.Windows {
		w := &span.Windows[i]
		if taken&board.Periods&(1<<i) == 0 || ts.final(name, span, i) {
			continue
		}
		n, r := ts.window(t, name, *w)
		if r != Added {
			return r
		}
		ts.scratch = appendSet(ts.scratch[:0], []int32{n})
		target, ok := ts.setOf[string(ts.scratch)]
		if !ok {
			if r := t.take(setBytes + 8 + ts.others*otherBytes + ruleBytes); r != Added {
				return r
			}
			target = ts.set([]int32{n})
		}
		value := by.rules[rule].Value(tuple, boardrules.Cut(w.Start, w.End, board.Ticks[w.Period], at))
		by.parts = append(by.parts, part{target, value.Packed, value.Time})
	}
	return Added
}
