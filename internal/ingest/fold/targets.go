package fold

import (
	"encoding/binary"
	"slices"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Two comparisons find the target of an event that is like the one before: the same boards, and a time in the
// same span.
type targets struct {
	rules   *Rules
	byRules byRules
	shards  ledger.Shards
	others  int64 // number of shards minus one: each of them has its own Pieces

	finality
	windowSets
	boardLists

	spans   []span // of recent batches, kept from one batch to the next
	borders uint64 // the version of the borders that the spans use

	latest
}

// finality is what is known of final windows.
type finality struct {
	sealing *Sealed // the final windows known to the worker; nil: none, ever
	sealed  *sealed // the same at the batch's reset
	// Set for the current event if one of its windows is final on some board: the event's shard, its offset,
	// and the number of windows that are final by that offset.
	shard  int32
	offset int64
	finals int32
	// out are the final windows that the batch left out of its events.
	out map[sealedWindow]struct{}
}

// windowSets are the windows of a batch, and the sets of them in which events count.
type windowSets struct {
	windows []ledger.Window
	sets    [][]int32 // a set of windows, as ascending indexes
	setOf   map[string]int32
	at      map[window]int32
}

// boardLists are the lists of boards that events name.
type boardLists struct {
	boards  map[string]int32 // a NUL ends each name
	names   [][]string
	known   map[key]int32
	scratch []byte
	lookup  []int32
}

// latest is what the latest event had: most events have the same.
type latest struct {
	lastKey    key
	lastTarget int32
	lastSpan   int // an index in spans
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
	finals int32  // number of windows that are final by its offset; 0 if no window of the span can be final
	shard  int32  // of its member; 0 in the same case
	taken  uint32 // windows of the span that accept the event, one bit each
	span   int64  // the span's start
}

// Sizes in bytes for charging memory. They assume maps and slices that have just grown, and so are mostly
// empty, and include what Pieces keeps for each entry.
const (
	windowBytes = 224
	setBytes    = 192 // plus 8 for each window
	otherBytes  = 4   // for each further shard
	listBytes   = 128 // plus 48 for each board, plus its text
	spansKept   = 8   // from one batch to the next
	spansMost   = 128 // in one batch
)

// by makes the targets use other rules. It drops the spans, which belong to the previous rules.
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

// kept is the maximum number of elements for which an empty batch keeps room. Larger slices and maps are
// allocated again for the next batch: a process has two batches for each partition, and most of them are idle.
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

// take returns the span of an event's time, and the span's windows that accept the event: none if it is late or
// early.
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

// spanOf finds the span of a time among the recent ones, or computes it.
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
	if len(ts.spans) >= spansMost { // events have very different times: do not search long lists
		ts.spans = ts.spans[:0]
	}
	ts.lastSpan = len(ts.spans)
	ts.spans = append(ts.spans, s)
	return &ts.spans[ts.lastSpan], nil
}

// settle drops the spans if the known borders have changed. Events that the batch has already folded keep their
// windows: Redis refuses a piece that has windows by old and by new borders.
func (ts *targets) settle() {
	if now := ts.rules.borders.now(); now != ts.borders {
		ts.borders, ts.spans, ts.lastSpan = now, nil, 0
	}
}

// sameBoards returns the number of the last event's list of boards if these boards are the same, else -1.
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

// add creates a target: the accepting windows of every board.
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
				return 0, r // windows added so far are in no set; they do no harm
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

// appendSet appends a set of windows, given as ascending indexes, in the form of a map key.
func appendSet(b []byte, windows []int32) []byte {
	for _, w := range windows {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return b
}

// set returns the number of a set of windows.
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
