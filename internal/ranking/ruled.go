package ranking

// Boards with other rules than the default one. A window's listing has the rule that its scores were
// written by:
//
//	lb:{0}:windows   arena:weekly:2026-W47 -> {…,"rule":"best(stage:999,revives:99:fewest)",…}
//
// So a window's scores can be decoded without the configuration, a new board doesn't change the schema, and
// apply.lua refuses a board whose rule has changed, in the call that would write.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// Ruled is the rule of a board that doesn't use the default rule, and its layouts.
type Ruled struct {
	Rule    *rules.Rule
	Layouts map[periods.Period]codec.TupleLayout
}

// ruled is a board's rule, prepared for calls and answers.
type ruled struct {
	rule    rules.Rule
	text    string
	layouts map[string]codec.TupleLayout // by period
	scripts map[string]string            // the rule as an argument of apply.lua, by period
}

func ruledBoards(all map[string]*Ruled) map[string]*ruled {
	if len(all) == 0 {
		return nil
	}
	boards, known := map[string]*ruled{}, map[*Ruled]*ruled{nil: nil} // nil: the default rule
	for name, b := range all {
		if _, ok := known[b]; !ok {
			r := &ruled{rule: *b.Rule, text: b.Rule.Text(), layouts: map[string]codec.TupleLayout{}, scripts: map[string]string{}}
			for p, l := range b.Layouts {
				r.layouts[string(p)], r.scripts[string(p)] = l, b.Rule.Script(&l.Packing)
			}
			known[b] = r
		}
		boards[name] = known[b]
	}
	return boards
}

// ruled returns a board's rule; nil means the default rule.
func (s *Store) ruled(board string) *ruled {
	if s.boards == nil {
		return nil
	}
	if r, ok := s.boards[board]; ok {
		return r
	}
	return s.boards[rules.AnyBoard]
}

// Layout returns the layout of a board's scores in the windows of a period, if the board has the period.
func (s *Store) Layout(board, period string) (codec.TupleLayout, bool) {
	if r := s.ruled(board); r != nil {
		l, ok := r.layouts[period]
		return l, ok
	}
	l, ok := s.points[period]
	return l, ok
}

// Fields returns the fields of a board with another rule than the default one; they are empty for the
// default rule.
func (s *Store) Fields(board string) codec.Fields {
	if r := s.ruled(board); r != nil {
		return r.rule.Fields
	}
	return codec.Fields{}
}

// ruleOf returns the common rule of a group's windows.
func (s *Store) ruleOf(g *ledger.Group, windows []ledger.Window) (*ruled, error) {
	if s.boards == nil || len(g.Windows) == 0 {
		return nil, nil //nolint:nilnil // the default rule
	}
	r := s.ruled(windows[g.Windows[0]].Board)
	for _, w := range g.Windows[1:] {
		if other := s.ruled(windows[w].Board); other != r && (other == nil || r == nil || other.rule != r.rule) {
			return nil, Faultf("%s and %s are in one group, and their boards have different rules", windows[g.Windows[0]].Listing(), windows[w].Listing())
		}
	}
	return r, nil
}

// ruledWindow appends the arguments of apply.lua for a window of a board with another rule.
func (e *encoder) ruledWindow(r *ruled, w *ledger.Window, retention time.Duration) error {
	l, ok := r.layouts[w.Period]
	if !ok {
		return Faultf("board %s has no %s windows", w.Board, w.Period)
	}
	if ticks := l.Ticks(w.Start, w.End, w.Start); ticks < 0 || ticks >= 1<<l.K {
		return Faultf("window %s [%d, %d) ms doesn't fit its layout (%v)", w.Listing(), w.Start, w.End, l)
	}
	e.args = append(e.args, w.Start, w.End, retention.Milliseconds(), kindName(l.Packing.Kind), l.K, l.Tick, r.scripts[w.Period])
	return nil
}

// beyond is larger than any field's digit.
const beyond = 1<<53 - 1

// digits writes a list for each field, with each member's digit, or with what is added to it.
func (e *encoder) digits(r *rules.Rule, members []ledger.Member) {
	for f := range r.Fields.Len() {
		e.lists = append(e.lists, '[')
		for i := range members {
			digits, ok := r.Digits(members[i].Points)
			if !ok {
				digits[f] = beyond
			}
			e.lists = append(strconv.AppendInt(e.lists, digits[f], 10), ',')
		}
		e.lists[len(e.lists)-1] = ']'
		e.lists = append(e.lists, ',')
	}
}

// RuleError reports that a window's scores were written by another rule than its board has now.
type RuleError struct {
	Window string // its listing's name
	Found  string // the rule in its listing; empty for the default rule
	Wanted string // by the configuration
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s was written by the rule %s, and the configuration has %s for its board: set it back, "+
		"or give the new rule to a board with another name, or rebuild its windows (consumer rebuild --board)",
		e.Window, RuleName(e.Found), RuleName(e.Wanted))
}

// RuleName returns a rule as a listing has it, for messages.
func RuleName(text string) string {
	if text == "" {
		return "points, summed (the default)"
	}
	return text
}

// CheckRule returns a *RuleError if a listing's rule differs from the board's.
func (s *Store) CheckRule(l *Listing) error {
	wanted := ""
	if r := s.ruled(l.Board); r != nil {
		wanted = r.text
	}
	if l.Rule != wanted {
		return &RuleError{l.Listing(), l.Rule, wanted}
	}
	return nil
}

// OtherRules returns the listed windows that were written by another rule than their boards have, and whose
// retention isn't over, sorted by name. apply.lua refuses events for them.
func (s *Store) OtherRules(ctx context.Context) ([]*RuleError, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.Listings(ctx)
	if err != nil {
		return nil, err
	}
	var others []*RuleError
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l, err := ParseListing(name, all[name])
		if err != nil || l.Expires <= now.UnixMilli() {
			continue // invalid, which apply.lua reports, or over
		}
		if other, ok := errors.AsType[*RuleError](s.CheckRule(&l)); ok {
			others = append(others, other)
		}
	}
	return others, nil
}
