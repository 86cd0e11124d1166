package config

// The boards of a section: their rules and periods.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// Board is a board with its rule and periods.
type Board struct {
	Name    string      // or rules.AnyBoard
	Rule    *rules.Rule // nil: the default rule. Boards with equal rules share it
	Periods []Period    // its enabled periods
	Layouts map[periods.Period]codec.TupleLayout
}

// Ruled returns the boards of the section, by name. It returns none if boards is a list.
func (c *Config) Ruled() ([]Board, error) {
	all, problems := c.ruled()
	if len(problems) > 0 {
		return nil, errors.New("boards: " + strings.Join(problems, "; "))
	}
	return all, nil
}

func (c *Config) ruled() (all []Board, problems []string) {
	known := map[string]*rules.Rule{}
	for _, s := range c.Specs {
		b := Board{Name: s.Name, Layouts: map[periods.Period]codec.TupleLayout{}}
		wrong := func(err error) { problems = append(problems, fmt.Sprintf("board %s: %v", s.Name, err)) }
		r, err := s.rule(c.MaxPoints)
		if err != nil {
			wrong(c.whatWouldFit(&s, err))
			continue
		}
		if !r.IsDefault(c.MaxPoints) {
			if b.Rule = known[r.Text()]; b.Rule == nil {
				b.Rule = &r
				known[r.Text()] = b.Rule
			}
		}
		missing := slices.Clone(s.Periods)
		for _, p := range c.Kept() {
			if s.Periods != nil && !slices.Contains(s.Periods, string(p.Name)) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == string(p.Name) })
			b.Periods = append(b.Periods, *p)
			cut, err := c.Rule(p)
			if err != nil {
				continue // reported for the period
			}
			if b.Layouts[p.Name], err = codec.NewTupleLayout(codec.Kind(p.Layout), cut.Length(), r.Fields); err != nil {
				wrong(fmt.Errorf("%s scores: %w", p.Name, err))
			}
		}
		for _, name := range missing {
			wrong(c.notKept(name))
		}
		all = append(all, b)
	}
	return all, problems
}

// whatWouldFit returns the error for fields that no layout has room for. It names what would fit in the layout
// of the period with the longest windows, which has the least room.
func (c *Config) whatWouldFit(s *BoardSpec, err error) error {
	fields, unnamed := s.fields()
	if unnamed != nil || !errors.Is(err, codec.ErrRange) {
		return err
	}
	var longest time.Duration
	for _, p := range c.Kept() {
		cut, bad := c.Rule(p)
		if bad != nil || cut.Length() <= longest {
			continue
		}
		if _, says := codec.NewTupleLayout(codec.Kind(p.Layout), cut.Length(), fields); says != nil {
			longest, err = cut.Length(), fmt.Errorf("%s scores: %w", p.Name, says)
		}
	}
	return err
}

// notKept returns the error for a board with a period that is not enabled.
func (c *Config) notKept(name string) error {
	var all []string
	for i := range c.Periods {
		if all = append(all, string(c.Periods[i].Name)); all[i] == name {
			return fmt.Errorf("periods names %q, which is not enabled: set periods.%s.enabled or remove it", name, name)
		}
	}
	return fmt.Errorf("periods names %q, an unknown period; did you mean %s?", name, nearest(name, all))
}

func (s *BoardSpec) fields() (codec.Fields, error) {
	list := make([]codec.Field, len(s.Fields))
	for i, f := range s.Fields {
		list[i] = codec.Field{Name: f.Name, Max: f.Max, Signed: f.Signed, Fewest: f.Order == orderFewest}
	}
	return codec.NewFields(list...)
}

func (s *BoardSpec) rule(maxPoints int64) (rules.Rule, error) {
	score := s.Score
	if score == "" {
		score = rules.Sum
	}
	if len(s.Fields) == 0 {
		r, err := rules.Default(maxPoints)
		if err != nil || score == rules.Sum {
			return r, err
		}
		return rules.New(score, r.Fields)
	}
	fields, err := s.fields()
	if err != nil {
		return rules.Rule{}, err
	}
	return rules.New(score, fields)
}

// Rules returns the boards of the section for reading events, or nil if all of them have the default rule.
func (c *Config) Rules() (rules.Boards, error) {
	all, err := c.Ruled()
	if err != nil || !slices.ContainsFunc(all, func(b Board) bool { return b.Rule != nil }) {
		return nil, err
	}
	boards := rules.Boards{}
	for _, b := range all {
		boards[b.Name] = b.Rule
	}
	return boards, nil
}

// Lists returns the periods of the boards that list their own, by board, in the order of the periods; nil if
// none does. If the entry for all other boards lists its periods, the result contains every named board.
func (c *Config) Lists() map[string][]periods.Period {
	others := slices.ContainsFunc(c.Specs, func(s BoardSpec) bool { return s.Name == rules.AnyBoard && s.Periods != nil })
	var lists map[string][]periods.Period
	for _, s := range c.Specs {
		if s.Periods == nil && !others {
			continue
		}
		if lists == nil {
			lists = map[string][]periods.Period{}
		}
		for _, p := range c.Kept() {
			if c.Has(s.Name, p.Name) {
				lists[s.Name] = append(lists[s.Name], p.Name)
			}
		}
	}
	return lists
}

// Allows reports whether events may name a board. For rules.AnyBoard it reports whether they may name any
// board.
func (c *Config) Allows(board string) bool {
	return len(c.Boards) == 0 || slices.Contains(c.Boards, board)
}

// Has reports whether a board has windows of an enabled period.
func (c *Config) Has(board string, period periods.Period) bool {
	of := -1
	for i, s := range c.Specs {
		if s.Name == board || s.Name == rules.AnyBoard && of < 0 {
			of = i
		}
	}
	return of < 0 || c.Specs[of].Periods == nil || slices.Contains(c.Specs[of].Periods, string(period))
}
