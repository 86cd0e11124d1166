package ranking

// Adds periods to standings that were written without them.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/rules"
)

// clocksAhead is how far record times may be ahead of Redis's clock: Kafka accepts records whose time is up
// to an hour ahead of the broker's clock.
const clocksAhead = time.Hour

// ahead returns one more than the ms by which the time of a counted event can be ahead of Redis's clock.
func ahead(maxFuture time.Duration) int64 { return (maxFuture + clocksAhead).Milliseconds() + 1 }

// errHeldUp reports that a period can't be added while a rebuild or a reshard is about to switch.
var errHeldUp = errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones")

// Extend adds the periods that the configuration has and a shard's schema lacks, for all boards or for
// boards that list their periods, and returns them. It does so only if the schema differs in nothing else.
// If there is no schema, or another difference, Extend does nothing. It sets the state's schema to the one
// in Redis.
//
// From then on, consumers that lack a period write nothing, and halt until they are configured alike.
func (s *Store) Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) ([]ledger.Added, error) {
	for {
		text := s.target(st.Schema)
		all := s.additions(st.Schema, text)
		if len(all) == 0 {
			return nil, nil
		}
		args := []any{st.Schema, text, strconv.FormatInt(ahead(maxFuture), 10)}
		args = append(args, s.marks(st.Schema, all)...)
		found := ""
		reply, err := s.Call(ctx, lua.Extend, []string{s.keys.Schema(), s.keys.Origin(), s.keys.Hold()}, args...)
		if err == nil {
			found, err = s.extended(reply, text)
		}
		if err != nil {
			return nil, fmt.Errorf("add the periods %s to %q: %w", namesOf(all), s.prefix, err)
		}
		if st.Schema = found; found == text {
			s.adopt(text)
			return s.added(st, all, maxFuture), nil
		}
	}
}

// marks returns the arguments of extend.lua about the additions to a schema.
func (s *Store) marks(schema string, all []addition) (args []any) {
	before, _ := partsOf(schema)
	for _, a := range all {
		if a.counted {
			continue
		}
		first := ""
		if start, ok := s.firstStart(a.period); ok {
			first = strconv.FormatInt(start, 10)
		}
		args = append(args, SinceField(ledger.SinceKey(a.board, a.period)), first)
		if a.board != rules.AnyBoard {
			continue
		}
		for board, list := range before.boards { // these boards already had the period
			if board != rules.AnyBoard && slices.Contains(list, a.period) {
				args = append(args, SinceField(ledger.SinceKey(board, a.period)), "always")
			}
		}
	}
	return args
}

// extended returns the schema in Redis after a call that tried to write text.
func (s *Store) extended(reply []any, text string) (found string, err error) {
	answer, err := Texts(reply)
	switch {
	case err == nil && len(answer) == 1 && answer[0] == "extended":
		return text, nil
	case err == nil && len(answer) == 1 && answer[0] == "held":
		return "", s.OfShard(errHeldUp)
	case err == nil && len(answer) == 2 && answer[0] == "schema": // the schema changed meanwhile
		return answer[1], nil
	}
	return "", Unexpected(lua.Extend, reply)
}

// Adds returns the periods that Extend would add at the state's time.
func (s *Store) Adds(st *ledger.State, maxFuture time.Duration) []ledger.Added {
	return s.added(st, s.additions(st.Schema, s.target(st.Schema)), maxFuture)
}

func (s *Store) additions(found, text string) []addition {
	all, ok := grown(found, text)
	if !ok || found == "" {
		return nil
	}
	return all
}

func (s *Store) added(st *ledger.State, all []addition, maxFuture time.Duration) (added []ledger.Added) {
	since := st.Now.UnixMilli() + ahead(maxFuture)
	for _, a := range all {
		one := ledger.Added{Board: a.board, Period: a.period, Since: since}
		if first, ok := s.firstStart(a.period); a.counted || ok && first >= since {
			one.Since = 0
		}
		added = append(added, one)
	}
	return added
}

func namesOf(all []addition) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}

// firstStart returns the start of a period's first window in Unix ms; false if it has no first window.
func (s *Store) firstStart(period string) (int64, bool) {
	rule := s.periods[period].Rule
	w, ok := rule.First()
	return w.Start, ok
}

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

// The times from which added periods are counted.

// sinceField is the prefix of an added period's field among the partitions' origins: since:<period>, or
// since:<board>:<period> if it was added to the list of a board. Every partition's field has a slash, so
// none is mistaken for a period's.
const sinceField = "since:"

// SinceField returns the field among the origins for a key of ledger.State.Since. Its value is Unix ms.
func SinceField(key string) string { return sinceField + key }

// TakeSince removes the fields of periods from the origins, and returns their times as ledger.State.Since,
// nil without any.
func TakeSince(origins map[string]string) (since map[string]int64, err error) {
	for field, text := range origins {
		key, ok := strings.CutPrefix(field, sinceField)
		if !ok || strings.Contains(key, "/") {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, Faultf("the period %s is counted since %q, which is not a time in Unix ms", key, Clip(text))
		}
		if since == nil {
			since = map[string]int64{}
		}
		since[key] = ms
		delete(origins, field)
	}
	return since, nil
}

// CountedSince returns the time from which a board's events are counted in a period, in Unix ms; 0 if they
// were counted from the beginning. With board "" it returns that time of the period on all boards.
func CountedSince(st *ledger.State, board, period string) int64 {
	if board == "" {
		return st.Since[period]
	}
	listed, ok := st.Since[ledger.SinceKey(board, period)]
	if !ok {
		listed = st.Since[ledger.SinceKey(rules.AnyBoard, period)]
	}
	return max(listed, st.Since[period])
}

// Incomplete lists the partitions from which a board's window of a period may lack events: those whose
// origin is later than the window's start, Unix ms, or all of them if the period was added later than that
// start.
func Incomplete(st *ledger.State, board, period string, start int64) ([]string, error) {
	since := CountedSince(st, board, period)
	var all []string
	for partition, text := range st.Origins {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", partition, err)
		}
		if start < max(o.Time, since) {
			all = append(all, partition)
		}
	}
	if start < since {
		for partition := range st.Ledger {
			if _, ok := st.Origins[partition]; !ok {
				all = append(all, partition)
			}
		}
	}
	sort.Strings(all)
	return all, nil
}
