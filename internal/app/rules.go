package app

// A configuration's rules as canonical JSON.

import (
	"fmt"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

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
