package fold

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
)

// Sealed are windows that were found to be final: an event counts in none of them, and is late
// where every window that would take it is one. It learns of them as pieces are refused, so it has
// those that events still come for. It is safe for concurrent use.
//
// What a batch knows of it is what was known as the batch was Reset: an event counts in the same
// windows whenever it is folded or read again for that batch.
type Sealed struct {
	mu  sync.Mutex
	all atomic.Pointer[sealed]
}

// sealed never changes.
type sealed struct {
	on  map[sealedWindow]struct{}
	any map[sealedWindow]struct{} // of no board: that are final on some
}

type sealedWindow struct {
	board  string
	period periods.Period
	window string
}

// mostSealed is how many windows are known at a time. With more of them all are found again.
const mostSealed = 10_000

// Add learns of windows.
func (s *Sealed) Add(windows ...ledger.Window) {
	s.change(func(all map[sealedWindow]struct{}) {
		if len(all)+len(windows) > mostSealed {
			clear(all)
		}
		for i := range windows {
			all[sealedWindow{windows[i].Board, periods.Period(windows[i].Period), windows[i].Name}] = struct{}{}
		}
	})
}

// Remove forgets windows that aren't final any more.
func (s *Sealed) Remove(windows ...ledger.Window) {
	s.change(func(all map[sealedWindow]struct{}) {
		for i := range windows {
			delete(all, sealedWindow{windows[i].Board, periods.Period(windows[i].Period), windows[i].Name})
		}
	})
}

// Windows are those that it knows, without their bounds.
func (s *Sealed) Windows() []ledger.Window {
	var all []ledger.Window
	for w := range s.now().on {
		all = append(all, ledger.Window{Board: w.board, Period: string(w.period), Name: w.window})
	}
	return all
}

func (s *Sealed) change(do func(map[sealedWindow]struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &sealed{on: map[sealedWindow]struct{}{}, any: map[sealedWindow]struct{}{}}
	maps.Copy(next.on, s.now().on)
	do(next.on)
	for w := range next.on {
		next.any[sealedWindow{"", w.period, w.window}] = struct{}{}
	}
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
		if _, ok := ts.sealed.any[sealedWindow{"", s.Windows[i].Period, s.Windows[i].Name}]; ok {
			s.sealed |= 1 << i
		}
	}
}

// final reports whether a window of a span is final on a board.
func (ts *targets) final(board string, s *span, window int) bool {
	if s.sealed&(1<<window) == 0 {
		return false
	}
	w := &s.Windows[window]
	_, ok := ts.sealed.on[sealedWindow{board, w.Period, w.Name}]
	return ok
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
