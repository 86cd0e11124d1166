package ranking

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
)

// Settle returns where each border is settled. Unless read is set, it first settles the borders that aren't
// settled yet, except those that would no longer be kept. A rebuild's shadow uses the borders of the live
// boards, so that a window doesn't depend on which of the two opened it first.
func (s *Store) Settle(ctx context.Context, borders []ledger.Border, read bool) ([]ledger.Settled, error) {
	args := []any{option(!read)}
	for _, b := range borders {
		args = append(args, b.Name, b.At, b.Keep)
	}
	reply, err := s.Call(ctx, lua.Settle, []string{s.borders}, args...)
	if err != nil {
		return nil, fmt.Errorf("settle the border of windows %s: %w", borders[0].Name, err)
	}
	words, err := Texts(reply)
	if err != nil {
		return nil, err
	}
	if len(words) != len(borders) {
		return nil, Unexpected(lua.Settle, reply)
	}
	all := make([]ledger.Settled, len(words))
	for i, word := range words {
		if word == "" {
			continue
		}
		if all[i].At, err = strconv.ParseInt(word, 10, 64); err != nil {
			return nil, Unexpected(lua.Settle, reply)
		}
		all[i].OK = true
	}
	return all, nil
}

// zoned reports whether the windows of any period depend on the time zone.
func (s *Store) zoned() bool {
	for _, p := range s.periods {
		if p.Rule.Zoned() {
			return true
		}
	}
	return false
}

// Borders reads all settled borders by name. A value is where the border is and until when it is kept, both
// in Unix ms.
func (s *Store) Borders(ctx context.Context) (map[string]string, error) {
	return s.Hash(ctx, s.borders, "the borders of windows", 0)
}

// SettledBorders maps the borders of calendar windows to their settled instants, in Unix ms.
type SettledBorders map[periods.Border]int64

// At returns a border's instant, if it is settled.
func (b SettledBorders) At(border periods.Border) (ms int64, ok bool) {
	ms, ok = b[border]
	return ms, ok
}

// SettledBorders returns all settled borders, for readers; nil if no period depends on the time zone.
func (s *Store) SettledBorders(ctx context.Context) (SettledBorders, error) {
	if !s.zoned() {
		return nil, nil
	}
	all, err := s.Borders(ctx)
	if err != nil {
		return nil, err
	}
	settled := SettledBorders{}
	for name, text := range all {
		border, ok := periods.ParseBorder(name)
		at, _, _ := strings.Cut(text, " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if ok && err == nil {
			settled[border] = ms
		}
	}
	return settled, nil
}

// bordersArg returns the last argument of a window in apply.lua: the names of its borders, or an empty text
// if the window doesn't depend on the time zone.
func (s *Store) bordersArg(w *ledger.Window) string {
	rule := s.periods[w.Period].Rule
	start, end, ok := rule.Borders(w.Name)
	if !ok {
		return ""
	}
	return strings.Join([]string{start.String(), end.String()}, ",")
}
