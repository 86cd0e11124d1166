package ranking

// Adds periods to standings that were written without them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
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
		return "", s.ofShard(errHeldUp)
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
