package app

// A text of rules as ingest uses it.

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// CountingOf returns the rules by which a configuration counts.
func CountingOf(cfg *config.Config) (rulebook.Counting, error) {
	set, err := RuleSet(cfg)
	if err != nil {
		return rulebook.Counting{}, err
	}
	return Counting(set.Text(), cfg)
}

// Counting parses the text of a set of rules for ingest, with the periods and layouts of a configuration.
// Settings that are not in the text are in the schema, which is the same for all replicas. It returns an error
// if this configuration cannot count by the text.
func Counting(text string, cfg *config.Config) (rulebook.Counting, error) {
	s, err := rules.Parse(text)
	if err != nil {
		return rulebook.Counting{}, err
	}
	c := rulebook.Counting{Duplicates: s.Duplicates}
	kinds, err := countedPeriods(&c, &s, cfg)
	if err != nil {
		return rulebook.Counting{}, err
	}
	names, err := countedBoards(&c, &s, cfg, kinds)
	if err != nil {
		return rulebook.Counting{}, err
	}
	c.Events.MaxEventBytes, c.Events.MaxFuture, c.Events.MaxPoints = int(s.MaxEventBytes), s.MaxFuture, cfg.MaxPoints
	c.Windows.Names = s.Fields["name"] != ""
	c.Events.Fields, err = countedFields(s.Fields, names)
	return c, err
}

// countedPeriods adds the periods of the set in the order of the configuration, and returns each one's layout.
func countedPeriods(c *rulebook.Counting, s *rules.Set, cfg *config.Config) (map[periods.Period]codec.Kind, error) {
	kinds := map[periods.Period]codec.Kind{}
	for _, p := range cfg.Kept() {
		if of, ok := s.Periods[p.Name]; ok {
			kinds[p.Name] = codec.Kind(p.Layout)
			c.Windows.Periods = append(c.Windows.Periods, fold.Period{Rule: of.Rule, Lateness: of.Lateness})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Periods)) {
		if _, ok := kinds[name]; !ok {
			return nil, fmt.Errorf("the period %s is not enabled", name)
		}
	}
	return kinds, nil
}

// countedBoards adds the boards of the set, if one has another rule than the default one or its own periods. It
// returns the names of the fields in the boards' rules.
func countedBoards(c *rulebook.Counting, s *rules.Set, cfg *config.Config, kinds map[periods.Period]codec.Kind) ([]string, error) {
	if len(s.Boards) == 0 {
		return nil, errors.New("there is no board")
	}
	var (
		boards = map[string]*fold.Board{}
		byRule = rules.Boards{}
		known  = map[rules.Rule]*rules.Rule{}
		names  []string
		apart  bool // a board differs from the default
	)
	_, others := s.Boards[rules.AnyBoard]
	for _, name := range slices.Sorted(maps.Keys(s.Boards)) {
		b := s.Boards[name]
		board := &fold.Board{Ticks: map[periods.Period]int64{}}
		if !b.Rule.IsDefault(cfg.MaxPoints) {
			if known[b.Rule] == nil {
				known[b.Rule] = &b.Rule
			}
			board.Rule = known[b.Rule]
			for _, f := range b.Rule.Fields.List() {
				if !event.IsOwn(f.Name) && !slices.Contains(names, f.Name) {
					names = append(names, f.Name)
				}
			}
		}
		for i := range c.Windows.Periods {
			cut := c.Windows.Periods[i].Rule
			if !slices.Contains(b.Periods, cut.Name()) {
				continue
			}
			board.Periods |= 1 << i
			l, err := codec.NewTupleLayout(kinds[cut.Name()], cut.Length(), b.Rule.Fields)
			if err != nil {
				return nil, fmt.Errorf("board %.70q: %s scores: %w", name, cut.Name(), err)
			}
			board.Ticks[cut.Name()] = l.Tick
		}
		boards[name], byRule[name] = board, board.Rule
		apart = apart || board.Rule != nil || len(board.Ticks) != len(c.Windows.Periods)
		if !others {
			c.Events.Boards = append(c.Events.Boards, name)
		}
	}
	if apart {
		c.Windows.Boards = boards
	}
	if len(known) > 0 {
		c.Events.Others = byRule
	}
	return names, nil
}

// countedFields returns the paths of the fields that count.
func countedFields(f map[string]string, names []string) (*event.Fields, error) {
	slices.Sort(names)
	var more []event.Other
	for _, name := range names {
		more = append(more, event.Other{Name: name, Path: f[name]})
	}
	for name := range f {
		if !event.IsOwn(name) && !slices.Contains(names, name) {
			return nil, fmt.Errorf("events have no field %.40q", name)
		}
	}
	fields, err := event.NewFields(event.Paths{EventID: f["event_id"], UserID: f["user_id"], Points: f["points"], Board: f["board"], OccurredAt: f["occurred_at"], Name: f["name"]}, more...)
	if err != nil {
		return nil, fmt.Errorf("event.fields: %w", err)
	}
	return fields, nil
}

// RuleSet returns all settings that decide how a record counts. Consumers count by its text alone: a setting
// that is not in it has no effect on counting.
func RuleSet(cfg *config.Config) (rules.Set, error) {
	byDefault, err := rules.Default(cfg.MaxPoints)
	if err != nil {
		return rules.Set{}, fmt.Errorf("max_points: %w", err)
	}
	s := rules.Set{
		Boards: map[string]rules.Board{}, Periods: map[periods.Period]rules.Period{}, Fields: map[string]string{},
		MaxEventBytes: cfg.MaxEventBytes, MaxFuture: cfg.MaxFuture.Milliseconds(),
		Duplicates: cfg.Duplicates,
	}
	board := rules.Board{Rule: byDefault}
	for _, p := range cfg.Kept() {
		rule, err := cfg.Rule(p)
		if err != nil {
			return rules.Set{}, err
		}
		s.Periods[p.Name] = rules.Period{Rule: rule, Lateness: cfg.LatenessOf(p).Milliseconds()}
		board.Periods = append(board.Periods, p.Name)
	}
	boards := cfg.Boards
	if len(boards) == 0 {
		boards = []string{rules.AnyBoard}
	}
	if cfg.Specs != nil {
		boards = nil
		if err := addBoards(&s, cfg, board); err != nil {
			return rules.Set{}, err
		}
	}
	for _, name := range boards {
		s.Boards[name] = board
	}
	for name, path := range map[string]string{
		"event_id": cfg.Fields.EventID, "user_id": cfg.Fields.UserID, "points": cfg.Fields.Points,
		"board": cfg.Fields.Board, "occurred_at": cfg.Fields.OccurredAt, "name": cfg.Fields.Name,
	} {
		if path != "" {
			s.Fields[name] = path
		}
	}
	return s, nil
}

// addBoards adds the boards of the section, and the paths of their fields, to a set.
func addBoards(s *rules.Set, cfg *config.Config, usual rules.Board) error {
	all, err := cfg.Ruled()
	if err != nil {
		return err
	}
	for _, b := range all {
		board := rules.Board{Rule: usual.Rule}
		if b.Rule != nil {
			board.Rule = *b.Rule
		}
		for _, p := range b.Periods {
			board.Periods = append(board.Periods, p.Name)
		}
		s.Boards[b.Name] = board
	}
	for _, o := range cfg.Others {
		s.Fields[o.Name] = o.Path
	}
	return nil
}
