package ranking

// How the schema grows. It has the periods, and of each board that lists its periods in the configuration
// that list. Both grow while consumers run, and neither shrinks: a consumer that lacks a period, or a
// board's, halts, so that every event after the addition is counted with it.
//
//	periods: daily, weekly                         what is kept
//	boards:  arena: weekly                         a board that lists its periods
//	         *: weekly                             boards that aren't named
//	                                               any other board has all periods
//
// A configuration need not allow the boards that Redis has a list of. Its consumers count nothing there, so
// their schema includes those lists as they found them.

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// schemaParts are the parts of a schema that grow.
type schemaParts struct {
	rest    map[string]any // what doesn't grow
	periods map[string]any
	boards  map[string][]string // the lists of boards
}

func partsOf(text string) (p schemaParts, ok bool) {
	var lists struct {
		Boards map[string][]string `json:"boards"`
	}
	if json.Unmarshal([]byte(text), &p.rest) != nil || json.Unmarshal([]byte(text), &lists) != nil {
		return p, false
	}
	p.periods, _ = p.rest["periods"].(map[string]any)
	p.boards = lists.Boards
	delete(p.rest, "periods")
	delete(p.rest, "boards")
	return p, true
}

// of returns the periods of a board.
func (p *schemaParts) of(board string) []string {
	if list, ok := p.boards[board]; ok {
		return list
	}
	if list, ok := p.boards[rules.AnyBoard]; ok {
		return list
	}
	return slices.Sorted(maps.Keys(p.periods))
}

// addition is a period that one schema has more than another: of a board, or of all that list none.
type addition struct {
	board, period string
	counted       bool // before the board had a list
}

func (a addition) String() string { return ledger.Added{Board: a.board, Period: a.period}.String() }

// grown returns what one schema has in addition to another. It reports whether the rest of the two is equal and
// nothing is missing.
func grown(before, after string) (all []addition, ok bool) {
	b, one := partsOf(before)
	a, two := partsOf(after)
	if !one || !two || !reflect.DeepEqual(a.rest, b.rest) {
		return nil, false
	}
	for name, of := range b.periods {
		if !reflect.DeepEqual(of, a.periods[name]) {
			return nil, false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.periods)) {
		if _, was := b.periods[name]; !was {
			all = append(all, addition{period: name})
		}
	}
	for board, list := range b.boards {
		now, listed := a.boards[board]
		if !listed || slices.ContainsFunc(list, func(name string) bool { return !slices.Contains(now, name) }) {
			return nil, false
		}
	}
	for _, board := range slices.Sorted(maps.Keys(a.boards)) {
		_, listed := b.boards[board]
		for _, name := range a.boards[board] {
			counted := slices.Contains(b.of(board), name)
			if _, kept := b.periods[name]; kept && (!listed || !counted) {
				all = append(all, addition{board, name, counted})
			}
		}
	}
	return all, true
}

// target returns the schema that the store writes with, given the one found in Redis.
func (s *Store) target(found string) string {
	f, ok := partsOf(found)
	if !ok {
		return s.own.Text()
	}
	own := s.own
	own.Boards = maps.Clone(own.Boards)
	for board, list := range f.boards {
		if _, listed := own.Boards[board]; listed || s.allows == nil || s.allows(board) {
			continue
		}
		if own.Boards == nil {
			own.Boards = map[string][]periods.Period{}
		}
		for _, name := range list {
			own.Boards[board] = append(own.Boards[board], periods.Period(name))
		}
	}
	return own.Text()
}

// adopt makes the store use the lists of a schema found in Redis. It reports false if the rest of that differs.
func (s *Store) adopt(found string) bool {
	if found != s.text() {
		if found != s.target(found) {
			return false
		}
		s.schema.Store(&found)
		s.readAs.Store(&found)
	}
	return true
}

// text is the schema that the store reads and writes beside.
func (s *Store) text() string {
	if text := s.schema.Load(); text != nil {
		return *text
	}
	return "" // a View's store
}

// readable reports whether a schema found in Redis differs from the wanted one in nothing but the
// cluster, which readers don't know, and periods that aren't read here: those that were added since.
func readable(found, wanted string) bool {
	f, one := partsOf(found)
	w, two := partsOf(wanted)
	if !one || !two {
		return false
	}
	delete(f.rest, "cluster")
	delete(w.rest, "cluster")
	for name, of := range w.periods {
		if !reflect.DeepEqual(of, f.periods[name]) {
			return false
		}
	}
	for board, list := range w.boards {
		counted := f.of(board)
		if slices.ContainsFunc(list, func(name string) bool { return !slices.Contains(counted, name) }) {
			return false
		}
	}
	return reflect.DeepEqual(f.rest, w.rest)
}
