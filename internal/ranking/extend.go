package ranking

// Periods that are added to standings that were written without them.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// clocksAhead is how far record times may be ahead of Redis's clock: Kafka takes records whose time
// is up to an hour ahead of its own.
const clocksAhead = time.Hour

// ahead returns one more than the ms by which the time of a counted event can be ahead of Redis's clock.
func ahead(maxFuture time.Duration) int64 { return (maxFuture + clocksAhead).Milliseconds() + 1 }

// errHeldUp says that a period can't be added while a rebuild or a reshard is about to switch.
var errHeldUp = errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones")

// Extend adds to a shard's schema the periods that the configuration has and the schema lacks, if that
// is the only difference, and returns them. If there is no schema, or another difference, it does
// nothing.
//
// Consumers that lack a period write nothing from then on, and halt until they are configured alike.
func (s *Store) Extend(ctx context.Context, st *ledger.State, maxFuture time.Duration) ([]ledger.Added, error) {
	added := s.Adds(st, maxFuture)
	if len(added) == 0 {
		return nil, nil
	}
	args := []any{st.Schema, s.schema, strconv.FormatInt(ahead(maxFuture), 10)}
	names := make([]string, len(added))
	for i, a := range added {
		names[i] = a.Period
		first := ""
		if start, ok := s.firstStart(a.Period); ok {
			first = strconv.FormatInt(start, 10)
		}
		args = append(args, SinceField(a.Period), first)
	}
	reply, err := s.Call(ctx, lua.Extend, []string{s.keys.Schema(), s.keys.Origin(), s.keys.Hold()}, args...)
	if err == nil {
		err = s.extended(reply)
	}
	if err != nil {
		return nil, fmt.Errorf("add the periods %s to %q: %w", strings.Join(names, ", "), s.prefix, err)
	}
	return added, nil
}

func (s *Store) extended(reply []any) error {
	answer, err := Texts(reply)
	switch {
	case err == nil && len(answer) == 1 && answer[0] == "extended":
		return nil
	case err == nil && len(answer) == 1 && answer[0] == "held":
		return s.ofShard(errHeldUp)
	case err == nil && len(answer) == 2 && answer[0] == "schema":
		return s.ofShard(&SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: answer[1]})
	}
	return Unexpected(lua.Extend, reply)
}

// Adds returns the periods that Extend would add as of the state's time.
func (s *Store) Adds(st *ledger.State, maxFuture time.Duration) []ledger.Added {
	if st.Schema == "" || st.Schema == s.schema {
		return nil
	}
	names, ok := morePeriods(st.Schema, s.schema)
	if !ok {
		return nil
	}
	since := st.Now.UnixMilli() + ahead(maxFuture)
	added := make([]ledger.Added, len(names))
	for i, name := range names {
		added[i] = ledger.Added{Period: name, Since: since}
		if first, ok := s.firstStart(name); ok && first >= since {
			added[i].Since = 0
		}
	}
	return added
}

// firstStart is when the first window of a period starts, Unix ms; false if it has no first window.
func (s *Store) firstStart(period string) (int64, bool) {
	rule := s.periods[period].Rule
	w, ok := rule.First()
	return w.Start, ok
}

// morePeriods are the periods that a schema has more than another, if that is the only difference.
func morePeriods(without, with string) (names []string, ok bool) {
	var a, b map[string]any
	if json.Unmarshal([]byte(without), &a) != nil || json.Unmarshal([]byte(with), &b) != nil {
		return nil, false
	}
	names = dropMore(a, b)
	return names, len(names) > 0 && reflect.DeepEqual(a, b)
}

// dropMore deletes from b the periods that a hasn't.
func dropMore(a, b map[string]any) (names []string) {
	fewer, _ := a["periods"].(map[string]any)
	more, _ := b["periods"].(map[string]any)
	for name := range more {
		if fewer[name] == nil {
			names = append(names, name)
			delete(more, name)
		}
	}
	slices.Sort(names)
	return names
}
