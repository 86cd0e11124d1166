package fold

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Sealed has the windows that a worker found to be final in a partition, by shard and from an offset on. An
// event at or after that offset does not count in the window, and is late if every window that would take it is
// final. A worker learns of a final window when a piece is refused, so Sealed only has windows for which events
// still arrive.
//
// Each shard is sealed by its own call, with its own ledger. A window that is final on one shard may still be
// open on another. The events of that shard's members must count until it is sealed; otherwise its final
// standings would lack events that its ledger covers.
//
// The offset is the shard's ledger position when the piece was refused. A window is sealed only once it has
// counted every record that was in the log when it closed. Every event from that offset on is therefore late
// for the window, even if the seal is lost. Earlier events may have to be counted again, if Redis goes back to
// before the seal:
//
//	e is counted, at 100 ─▶ sealed ─▶ refused at 101 ─▶ back to 90 ─▶ e counts again, 101 is late
//
// A batch uses what was known at its Reset, so an event counts in the same windows whenever it is folded or
// read again for that batch. Sealed is safe for concurrent use.
type Sealed struct {
	mu  sync.Mutex
	all atomic.Pointer[sealed]
}

// sealed is immutable.
type sealed struct {
	on    map[sealedWindow]int64    // window → the offset from which it is final
	any   map[sealedWindow]struct{} // windows, without their boards, that are final on some shard
	froms []int64                   // all offsets, ascending
}

type sealedWindow struct {
	shard  int // anyShard: final on some shard
	board  string
	period periods.Period
	window string
}

const anyShard = -1

// mostSealed is the maximum number of windows in memory. If there are more, all of them are dropped and found
// again.
const mostSealed = 4000

// Add records windows that are final on a shard from an offset on.
func (s *Sealed) Add(shard int, from int64, windows ...ledger.Window) {
	s.change(func(all map[sealedWindow]int64) {
		if len(all)+len(windows) > mostSealed {
			clear(all)
		}
		for i := range windows {
			w := sealedWindow{shard, windows[i].Board, periods.Period(windows[i].Period), windows[i].Name}
			if known, ok := all[w]; ok {
				all[w] = min(known, from)
			} else {
				all[w] = from
			}
		}
	})
}

// Remove drops windows that are no longer final on a shard.
func (s *Sealed) Remove(shard int, windows ...ledger.Window) {
	s.change(func(all map[sealedWindow]int64) {
		for i := range windows {
			delete(all, sealedWindow{shard, windows[i].Board, periods.Period(windows[i].Period), windows[i].Name})
		}
	})
}

// Windows returns the known final windows of a shard, without their bounds.
func (s *Sealed) Windows(shard int) []ledger.Window {
	var all []ledger.Window
	for w := range s.now().on {
		if w.shard == shard {
			all = append(all, ledger.Window{Board: w.board, Period: string(w.period), Name: w.window})
		}
	}
	return all
}

func (s *Sealed) change(do func(map[sealedWindow]int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &sealed{on: map[sealedWindow]int64{}, any: map[sealedWindow]struct{}{}}
	maps.Copy(next.on, s.now().on)
	do(next.on)
	for w, from := range next.on {
		next.any[sealedWindow{anyShard, "", w.period, w.window}] = struct{}{}
		next.froms = append(next.froms, from)
	}
	slices.Sort(next.froms)
	s.all.Store(next)
}

var noneSealed = &sealed{}

func (s *Sealed) now() *sealed {
	if s == nil {
		return noneSealed
	}
	if all := s.all.Load(); all != nil {
		return all
	}
	return noneSealed
}

// seal makes the targets use what is known now. A span has a mark for each of its windows that may be final on
// some board, so an event without such windows costs one comparison.
func (ts *targets) seal() {
	now := ts.sealing.now()
	if ts.sealed == now {
		return
	}
	ts.sealed, ts.spans, ts.lastSpan = now, nil, 0
}

// mark marks the windows of a span that are final on some board.
func (ts *targets) mark(s *span) {
	for i := range s.Windows {
		if _, ok := ts.sealed.any[sealedWindow{anyShard, "", s.Windows[i].Period, s.Windows[i].Name}]; ok {
			s.sealed |= 1 << i
		}
	}
}

// until sets the shard and the offset of the event that is folded, and counts the windows that are final by
// that offset.
func (ts *targets) until(shard int, offset int64) {
	ts.shard, ts.offset = int32(shard), offset
	n, found := slices.BinarySearch(ts.sealed.froms, offset)
	for found && n < len(ts.sealed.froms) && ts.sealed.froms[n] == offset {
		n++
	}
	ts.finals = int32(n)
}

// final reports whether a window of a span is final on a board, for the current event's shard and offset. If
// so, it records that the batch leaves the window out: each piece lists such windows, and Redis refuses the
// piece if one of them is not final.
func (ts *targets) final(board string, s *span, window int) bool {
	if s.sealed&(1<<window) == 0 {
		return false
	}
	w := &s.Windows[window]
	of := sealedWindow{int(ts.shard), board, w.Period, w.Name}
	from, ok := ts.sealed.on[of]
	if !ok || from > ts.offset {
		return false
	}
	ts.out[of] = struct{}{}
	return true
}

// without returns the listing names of the windows from which events of a shard's members were left out.
func (ts *targets) without(shard int) []string {
	var all []string
	for w := range ts.out {
		if w.shard == shard {
			all = append(all, ledger.Window{Board: w.board, Period: string(w.period), Name: w.window}.Listing())
		}
	}
	slices.Sort(all)
	return all
}

// over reports whether all windows that would take an event are final.
func (ts *targets) over(boards [][]byte, s *span, taken uint32) bool {
	if taken&^s.sealed != 0 && ts.rules.Boards == nil {
		return false
	}
	for _, name := range boards {
		takes := taken & ts.rules.periodsOf(string(name))
		for i := range s.Windows {
			if takes&(1<<i) != 0 && !ts.final(string(name), s, i) {
				return false
			}
		}
	}
	return true
}
