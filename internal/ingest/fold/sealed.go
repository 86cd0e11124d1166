package fold

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Sealed are windows that were found to be final in a partition, on a shard and from an offset on: an
// event from there on counts in none of them, and is late where every window that would take it is one.
// A worker learns of them as its pieces are refused, so it has those that events still come for.
//
// What is final on one shard may not be so on another yet, which is sealed by a call of its own, as of
// another ledger: its members' events count until it is, or what it is final with wouldn't be what its
// ledger then says.
//
// The offset is where the shard's ledger stood as a piece was refused. A window is sealed once all
// counts that was in the log as it took nothing any more, so from that offset on every event is late
// for it, whatever becomes of the seal. Those before may not be in any more, if Redis goes back to
// before the seal:
//
//	e is counted, at 100 ─▶ sealed ─▶ refused at 101 ─▶ back to 90 ─▶ e counts again, 101 is late
//
// What a batch knows is what was known as it was Reset: an event counts in the same windows whenever
// it is folded or read again for that batch. It is safe for concurrent use.
type Sealed struct {
	mu  sync.Mutex
	all atomic.Pointer[sealed]
}

// sealed never changes.
type sealed struct {
	on    map[sealedWindow]int64    // from which offset
	any   map[sealedWindow]struct{} // of no board: that are final on some
	froms []int64                   // all offsets, ascending
}

type sealedWindow struct {
	shard  int // anyShard: final on some
	board  string
	period periods.Period
	window string
}

const anyShard = -1

// mostSealed is how many windows are known at a time. With more of them all are found again.
const mostSealed = 4000

// Add learns of windows that are final on a shard from an offset on.
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

// Remove forgets windows that aren't final on a shard any more.
func (s *Sealed) Remove(shard int, windows ...ledger.Window) {
	s.change(func(all map[sealedWindow]int64) {
		for i := range windows {
			delete(all, sealedWindow{shard, windows[i].Board, periods.Period(windows[i].Period), windows[i].Name})
		}
	})
}

// Windows are those that it knows of a shard, without their bounds.
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

// seal has the targets go by what is known by now. A span knows which of its windows may be final
// on some board, so events of windows that none is final of cost one comparison.
func (ts *targets) seal() {
	now := ts.sealing.now()
	if ts.sealed == now {
		return
	}
	ts.sealed, ts.spans, ts.lastSpan = now, nil, 0
}

// mark notes which of a span's windows are final on some board.
func (ts *targets) mark(s *span) {
	for i := range s.Windows {
		if _, ok := ts.sealed.any[sealedWindow{anyShard, "", s.Windows[i].Period, s.Windows[i].Name}]; ok {
			s.sealed |= 1 << i
		}
	}
}

// until has the targets be of events of a shard from an offset on, and before the next at which a window
// becomes final.
func (ts *targets) until(shard int, offset int64) {
	ts.shard, ts.offset = int32(shard), offset
	n, found := slices.BinarySearch(ts.sealed.froms, offset)
	for found && n < len(ts.sealed.froms) && ts.sealed.froms[n] == offset {
		n++
	}
	ts.finals = int32(n)
}

// final reports whether a window of a span is final on a board, for the events that targets are of. Each
// piece of the batch then says that it leaves the window out, and isn't added where it isn't final.
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

// without are the windows that events of a shard's members were left out of, by their names in the listing.
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
