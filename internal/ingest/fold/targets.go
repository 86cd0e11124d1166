package fold

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Rules say which windows an event counts in.
type Rules struct {
	Periods []Period // MaxPeriods at most
	// Boards have rules or periods of their own, by name; that of rules.AnyBoard is for those
	// that aren't named. The others are by the default rule, in all periods.
	Boards map[string]*Board
	// Names says that members are called by their events' names.
	Names bool

	borders *Borders // that the periods' rules are bound to; nil: none
}

// Period is one that events count in.
type Period struct {
	Rule periods.Rule
	// Lateness is how long after its end a window takes events, by record time, in ms.
	Lateness int64
}

// BuiltIn are rules of built-in periods that share a calendar and a lateness, in ms.
func BuiltIn(c periods.Calendar, lateness int64, names ...periods.Period) Rules {
	var r Rules
	for _, name := range names {
		r.Periods = append(r.Periods, Period{periods.BuiltIn(name, c), lateness})
	}
	return r
}

// MaxPeriods is how many periods there may be.
const MaxPeriods = 32

// Windows are those that an event on some boards counts in, by its time and its record's, in ms.
// If there are none, the result is Late or Early, else Added. An error says that its time is in
// no window that a calendar has.
func (r *Rules) Windows(boards [][]byte, time, recordTime int64) ([]periods.Window, Result, error) {
	s, err := r.span(time)
	if err != nil {
		return nil, 0, err
	}
	var all []periods.Window
	kept := r.PeriodsOf(boards)
	for i, w := range s.Windows {
		if kept&s.taken(recordTime)&(1<<i) != 0 {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil, s.left(kept), nil
	}
	return all, Added, nil
}

// span is the stretch around a time in which every period keeps its window, and what decides
// which of those windows take an event.
type span struct {
	periods.Span
	// until is, for each window, the latest record time of an event that it takes.
	until []int64
	// all are the windows that take any, a bit each, and first is the least of their until: most
	// events come by then.
	all   uint32
	first int64
	// ahead are the periods whose windows all begin later, a bit each.
	ahead uint32
	// sealed are the windows that are final on some board, a bit each.
	sealed uint32
	// unsettled are the borders of its windows that aren't settled, and near is the latest record
	// time of an event that needs them to be.
	unsettled []Unsettled
	near      int64
}

// left is what becomes of an event that none of some periods' windows takes: Late, or Early
// before all windows of all of them.
func (s *span) left(kept uint32) Result {
	if kept&(1<<len(s.until)-1)&^s.ahead == 0 {
		return Early
	}
	return Late
}

// never is a record time that no record has: a period without a window takes nothing.
const never = math.MinInt64

func (r *Rules) span(time int64) (span, error) {
	rules := make([]periods.Rule, len(r.Periods))
	for i := range rules {
		rules[i] = r.Periods[i].Rule
	}
	of, err := periods.SpanOf(rules, time)
	if err != nil {
		return span{}, err
	}
	s := span{Span: of, until: make([]int64, len(rules)), first: math.MaxInt64}
	for i, w := range of.Windows {
		if _, place, _ := rules[i].At(time); place == periods.Before { // SpanOf would have failed
			s.ahead |= 1 << i
		}
		switch lateness := r.Periods[i].Lateness; {
		case w == periods.Window{}:
			s.until[i] = never
		case w.End > math.MaxInt64-lateness:
			s.until[i] = math.MaxInt64
		default:
			s.until[i] = w.End + lateness
		}
		if s.until[i] != never {
			s.all, s.first = s.all|1<<i, min(s.first, s.until[i])
		}
	}
	r.settles(&s)
	return s, nil
}

// taken are the windows that take an event of this record time, a bit each: those that have
// not ended more than the lateness before it.
func (s *span) taken(recordTime int64) uint32 {
	if recordTime <= s.first {
		return s.all
	}
	bits := uint32(0)
	for i, until := range s.until {
		if recordTime <= until && until != never {
			bits |= 1 << i
		}
	}
	return bits
}

// targets gives a small number to every set of windows that events of a batch
// count in: their target. Most batches have one or a few.
//
// A target is found in two comparisons where an event is like the one before
// it: the same boards, and a time in the same span, the stretch in which all
// periods keep their windows.
type targets struct {
	rules   *Rules
	sealing *Sealed // where what is sealed is learned; nil: nothing ever is
	sealed  *sealed // as the batch was reset
	shards  ledger.Shards
	// Of the event that is folded, if it is of a window that is final on some board: its shard, its
	// offset, and how many windows are final by then.
	shard  int32
	offset int64
	finals int32
	// out are the windows that events of the batch were left out of, as final.
	out map[sealedWindow]struct{}

	others int64 // shards but one: each has Pieces of its own

	windows []ledger.Window
	sets    [][]int32 // a set of windows, as ascending indexes
	setOf   map[string]int32
	at      map[window]int32

	byRules byRules

	boards  map[string]int32 // lists of boards, each name ended by a NUL
	names   [][]string
	known   map[key]int32
	scratch []byte
	lookup  []int32

	spans   []span // of the batches so far, kept from batch to batch
	borders uint64 // the version of the borders that the spans use

	lastKey    key
	lastTarget int32
	lastSpan   int // of spans
	lastList   []byte
	lastBoards int32
}

type window struct {
	board  string
	period periods.Period
	start  int64
}

type key struct {
	boards int32
	finals int32  // how many windows are final by its offset; 0 where none of the span's may be
	shard  int32  // of its member; 0 there too
	taken  uint32 // of the span's windows, a bit each: those that take the event
	span   int64  // start
}

// Sizes of what is kept, by which memory is charged: with maps and slices as they are at
// their emptiest, just grown, and with what Pieces has for each.
const (
	windowBytes = 224
	setBytes    = 192 // and 8 a window
	otherBytes  = 4   // for each further shard
	listBytes   = 128 // and 48 a board, and its text
	spansKept   = 8   // from batch to batch
	spansMost   = 128 // in one
)

// by has events counted by other rules: the spans are of those before.
func (ts *targets) by(rules *Rules) {
	if ts.rules != rules {
		ts.rules, ts.spans, ts.lastSpan = rules, nil, 0
		ts.byRules = numbered(rules)
	}
}

func (ts *targets) reset() {
	ts.seal()
	ts.settle()
	ts.setOf, ts.at = cleared(ts.setOf), cleared(ts.at)
	ts.boards, ts.known = cleared(ts.boards), cleared(ts.known)
	ts.windows, ts.sets, ts.names = emptied(ts.windows), emptied(ts.sets), emptied(ts.names)
	ts.byRules.reset()
	ts.out = cleared(ts.out)
	ts.lastBoards = -1
	ts.lastKey = key{boards: -1}
	if len(ts.spans) > spansKept {
		ts.spans, ts.lastSpan = nil, 0
	}
}

// kept is how many elements an empty batch keeps room for. What had more is made anew for
// the next one: a process has two batches a partition, and most of them are idle.
const kept = 64

func emptied[T any](s []T) []T {
	if cap(s) > kept {
		return nil
	}
	clear(s)
	return s[:0]
}

func cleared[K comparable, V any](m map[K]V) map[K]V {
	if m == nil || len(m) > kept {
		return map[K]V{}
	}
	clear(m)
	return m
}

// take returns the span of an event's time, and which of its windows take the
// event: none where it is late or early.
func (ts *targets) take(boards [][]byte, hash uint64, offset, time, recordTime int64) (*span, uint32, error) {
	span, err := ts.spanOf(time)
	if err != nil {
		return nil, 0, err
	}
	taken := span.taken(recordTime)
	if ts.rules.Boards != nil {
		taken &= ts.rules.PeriodsOf(boards)
	}
	ts.finals, ts.shard = 0, 0
	if span.sealed&taken != 0 {
		if ts.until(ts.shards.Of(hash), offset); ts.over(boards, span, taken) {
			taken = 0
		}
	}
	return span, taken, nil
}

// of returns the target of an event.
func (ts *targets) of(t *table, span *span, taken uint32, boards [][]byte) (target int32, r Result) {
	k := key{boards: ts.sameBoards(boards), finals: ts.finals, shard: ts.shard, taken: taken, span: span.Start}
	if k.boards >= 0 && k == ts.lastKey {
		return ts.lastTarget, Added
	}
	if k.boards < 0 {
		if k.boards, r = ts.boardsOf(t, boards); r != Added {
			return 0, r
		}
	}
	target, ok := ts.known[k]
	if !ok {
		if target, r = ts.add(t, k, span); r != Added {
			return 0, r
		}
	}
	ts.lastKey, ts.lastTarget = k, target
	return target, Added
}

// spanOf finds the span of a time among those of late, else works it out.
func (ts *targets) spanOf(time int64) (*span, error) {
	if ts.lastSpan < len(ts.spans) {
		if s := &ts.spans[ts.lastSpan]; s.Start <= time && time < s.End {
			return s, nil
		}
	}
	for i := range ts.spans {
		if s := &ts.spans[i]; s.Start <= time && time < s.End {
			ts.lastSpan = i
			return s, nil
		}
	}
	ts.settle()
	s, err := ts.rules.span(time)
	if err != nil {
		return nil, err
	}
	if ts.sealed != nil {
		ts.mark(&s)
	}
	if len(ts.spans) >= spansMost { // events from all over: don't search long lists
		ts.spans = ts.spans[:0]
	}
	ts.lastSpan = len(ts.spans)
	ts.spans = append(ts.spans, s)
	return &ts.spans[ts.lastSpan], nil
}

// settle drops the spans where more is known of borders since, or less. What a batch was folded by
// stays: a piece with windows of both is refused.
func (ts *targets) settle() {
	if now := ts.rules.borders.now(); now != ts.borders {
		ts.borders, ts.spans, ts.lastSpan = now, nil, 0
	}
}

// sameBoards returns the number of the last event's boards where these are the
// same, else -1.
func (ts *targets) sameBoards(boards [][]byte) int32 {
	if ts.lastBoards < 0 {
		return -1
	}
	rest := ts.lastList
	for _, b := range boards {
		if len(rest) <= len(b) || string(rest[:len(b)]) != string(b) || rest[len(b)] != 0 {
			return -1
		}
		rest = rest[len(b)+1:]
	}
	if len(rest) > 0 {
		return -1
	}
	return ts.lastBoards
}

func (ts *targets) boardsOf(t *table, boards [][]byte) (int32, Result) {
	list := ts.lastList[:0]
	for _, b := range boards {
		list = append(append(list, b...), 0)
	}
	ts.lastList, ts.lastBoards = list, -1
	n, ok := ts.boards[string(list)]
	if !ok {
		if r := t.take(int64(listBytes + 48*len(boards) + len(list))); r != Added {
			return 0, r
		}
		n = int32(len(ts.names))
		names := make([]string, len(boards))
		for i, b := range boards {
			names[i] = string(b)
		}
		ts.names = append(ts.names, names)
		ts.boards[string(list)] = n
	}
	ts.lastBoards = n
	return n, Added
}

// add makes a target: the taken windows of every board.
func (ts *targets) add(t *table, k key, span *span) (int32, Result) {
	names := ts.names[k.boards]
	set := ts.lookup[:0]
	for _, board := range names {
		takes := k.taken & ts.rules.periodsOf(board)
		for i, w := range span.Windows {
			if takes&(1<<i) == 0 || ts.final(board, span, i) {
				continue
			}
			n, r := ts.window(t, board, w)
			if r != Added {
				return 0, r // what was added so far is in no set, and no harm
			}
			set = append(set, n)
		}
	}
	ts.lookup = set
	if r := t.take(int64(setBytes+8*len(set)) + ts.others*otherBytes + ts.ruleBytes()); r != Added {
		return 0, r
	}
	slices.Sort(set)
	target := ts.set(set)
	ts.known[k] = target
	return target, Added
}

func (ts *targets) window(t *table, board string, w periods.Window) (int32, Result) {
	k := window{board, w.Period, w.Start}
	n, ok := ts.at[k]
	if !ok {
		if r := t.take(windowBytes + ts.others*otherBytes + ts.ruleBytes()); r != Added {
			return 0, r
		}
		n = int32(len(ts.windows))
		ts.windows = append(ts.windows, ledger.Window{
			Board: board, Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End,
		})
		if ts.rules.Boards != nil {
			ts.byRules.windows = append(ts.byRules.windows, ts.byRules.number(ts.rules.of(board).Rule))
		}
		ts.at[k] = n
	}
	return n, Added
}

// appendSet writes a set of windows, given as ascending indexes, as the key of a map.
func appendSet(b []byte, windows []int32) []byte {
	for _, w := range windows {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return b
}

// set numbers a set of windows.
func (ts *targets) set(windows []int32) int32 {
	ts.scratch = appendSet(ts.scratch[:0], windows)
	b := ts.scratch
	n, ok := ts.setOf[string(b)]
	if !ok {
		n = int32(len(ts.sets))
		ts.sets = append(ts.sets, slices.Clone(windows))
		if ts.rules.Boards != nil {
			ts.byRules.sets = append(ts.byRules.sets, ts.byRules.ofSet(windows))
		}
		ts.setOf[string(b)] = n
	}
	return n
}

func (ts *targets) width(target int32) int { return len(ts.sets[target]) }
