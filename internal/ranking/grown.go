package ranking

// How the schema grows. It has the periods, and the list of each board that lists its periods in the
// configuration. Both grow while consumers run, and neither shrinks. A consumer that lacks a period, or a
// board's period, halts, so that every event after the addition is counted in it.
//	periods: daily, weekly                         what is kept
//	boards:  arena: weekly                         a board that lists its periods
//	         *: weekly                             boards that aren't named
//	                                               any other board has all periods
//
// A configuration may disallow a board that Redis has a list of. Its consumers count nothing there, so
// their schema includes such lists as they were found.

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// schemaParts are a schema's parts that grow, and the rest.
type schemaParts struct {
	rest    map[string]any // the rest, which doesn't grow
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

// addition is a period that one schema has and another lacks, for one board or for all boards that list
// none.
type addition struct {
	board, period string
	counted       bool // the board was counted in the period before it had a list
}

func (a addition) String() string { return ledger.Added{Board: a.board, Period: a.period}.String() }

// grown returns the periods that after has in addition to before. ok is false if after lacks something, or
// if the rest of the two schemas differs.
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

// target returns the schema that the store writes with, given the schema found in Redis.
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

// adopt makes the store use the board lists of a schema found in Redis. It returns false if that schema
// differs otherwise.
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

// text returns the schema that the store reads and writes with.
func (s *Store) text() string {
	if text := s.schema.Load(); text != nil {
		return *text
	}
	return "" // a View's store
}

// readable reports whether a reader with the wanted schema can read standings with the found one. The found
// schema may have another cluster, which readers don't know, and additional periods, which were added
// since.
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
