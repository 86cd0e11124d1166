package ranking

// Periods that are added to what is there.

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// ahead is how far before the start of its first window, and max_future besides, a period has to
// be added. Kafka takes records whose time is up to an hour ahead of its clock.
const ahead = time.Hour

// Extend adds to a shard's schema the periods that the configuration has and it hasn't, if that is
// the only difference and nothing that was counted so far can lie in a window of theirs: their
// first window starts more than maxFuture and an hour from now. It returns their names. Where
// there is no schema, or no such difference, it does nothing.
//
// Consumers that don't have them yet write nothing from then on, and halt until they are
// configured alike.
func (s *Store) Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) (added []string, err error) {
	added, by, err := s.adds(st, maxFuture)
	if err != nil || len(added) == 0 {
		return nil, err
	}
	reply, err := s.Call(ctx, lua.Extend, []string{s.keys.Schema()}, st.Schema, s.schema, strconv.FormatInt(by.UnixMilli(), 10))
	if err != nil {
		return nil, fmt.Errorf("add periods %s: %w", strings.Join(added, ", "), err)
	}
	answer, err := Texts(reply)
	switch {
	case err == nil && len(answer) == 1 && answer[0] == "extended":
		return added, nil
	case err == nil && len(answer) == 1 && answer[0] == "too late":
		return nil, s.tooLate(st.Schema)
	case err == nil && len(answer) == 2 && answer[0] == "schema":
		return nil, s.CheckSchema(answer[1])
	}
	return nil, fmt.Errorf("add periods %s: %w", strings.Join(added, ", "), Unexpected(lua.Extend, reply))
}

// Adds returns the periods that Extend would add as of the state's time, and writes nothing.
func (s *Store) Adds(st *ledger.State, maxFuture time.Duration) (added []string, err error) {
	added, by, err := s.adds(st, maxFuture)
	if err == nil && len(added) > 0 && !st.Now.Before(by) {
		return nil, s.tooLate(st.Schema)
	}
	return added, err
}

// adds are the periods to add, and the time by which that has to be done.
func (s *Store) adds(st *ledger.State, maxFuture time.Duration) (added []string, by time.Time, err error) {
	if st.Schema == "" || st.Schema == s.schema {
		return nil, by, nil
	}
	added, ok := morePeriods(st.Schema, s.schema)
	if !ok {
		return nil, by, nil
	}
	first, ok := s.firstStart(added)
	if !ok {
		return nil, by, s.tooLate(st.Schema)
	}
	return added, first.Add(-maxFuture - ahead), nil
}

func (s *Store) tooLate(found string) error {
	return s.ofShard(&SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: found, TooLate: true})
}

// firstStart is when the first window of some periods starts; there is none if one has windows
// without a first.
func (s *Store) firstStart(names []string) (first time.Time, ok bool) {
	for _, name := range names {
		p := s.periods[name]
		w, ok := p.Rule.First()
		if !ok {
			return time.Time{}, false
		}
		if start := time.UnixMilli(w.Start); first.IsZero() || start.Before(first) {
			first = start
		}
	}
	return first, true
}

// morePeriods are the periods, none of them built in, that a schema has more than another, if that
// is the only difference.
func morePeriods(without, with string) (names []string, ok bool) {
	var a, b map[string]any
	if json.Unmarshal([]byte(without), &a) != nil || json.Unmarshal([]byte(with), &b) != nil {
		return nil, false
	}
	if names = dropMore(a, b); len(names) == 0 || !reflect.DeepEqual(a, b) {
		return nil, false
	}
	return names, true
}

// dropMore deletes from b the periods, none of them built in, that a hasn't.
func dropMore(a, b map[string]any) (names []string) {
	fewer, _ := a["periods"].(map[string]any)
	more, _ := b["periods"].(map[string]any)
	for name, p := range more {
		parts, _ := p.(map[string]any)
		if _, own := parts["of"]; own && fewer[name] == nil {
			names = append(names, name)
			delete(more, name)
		}
	}
	slices.Sort(names)
	return names
}
