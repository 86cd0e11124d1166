package clients

// What a configuration makes of records, as a text, and what such a text says to whoever counts.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// RuleSet is everything in a configuration that decides what a record results in. Whoever counts
// goes by its text alone: what isn't in it counts for nobody.
func RuleSet(cfg *config.Config) (rules.Set, error) {
	folded, err := FoldRules(cfg)
	if err != nil {
		return rules.Set{}, err
	}
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
	for _, p := range folded.Periods {
		s.Periods[p.Rule.Name()] = rules.Period{Rule: p.Rule, Lateness: p.Lateness}
		board.Periods = append(board.Periods, p.Rule.Name())
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
		"board": cfg.Fields.Board, "occurred_at": cfg.Fields.OccurredAt,
	} {
		if path != "" {
			s.Fields[name] = path
		}
	}
	return s, nil
}

// ReadRules reads the text of a set as those take it who count, where windows of some periods are
// kept. An error says what of it can't be gone by here.
func ReadRules(text string, kept map[periods.Period]time.Duration) (ingest.Counting, error) {
	s, err := rules.Parse(text)
	if err != nil {
		return ingest.Counting{}, err
	}
	folded, err := foldOf(&s, kept)
	if err != nil {
		return ingest.Counting{}, err
	}
	events, err := eventsOf(&s)
	return ingest.Counting{Events: events, Windows: folded, Duplicates: s.Duplicates}, err
}

func foldOf(s *rules.Set, kept map[periods.Period]time.Duration) (folded fold.Rules, err error) {
	var of []periods.Period
	for i, name := range slices.Sorted(maps.Keys(s.Boards)) {
		if i == 0 {
			of = s.Boards[name].Periods
		}
		if !slices.Equal(of, s.Boards[name].Periods) {
			return folded, fmt.Errorf("board %.70q has a list of periods of its own", name)
		}
	}
	if len(of) != len(s.Periods) {
		return folded, errors.New("there are periods that no board has")
	}
	for _, name := range of {
		if _, ok := kept[name]; !ok {
			return folded, fmt.Errorf("the period %s isn't enabled here", name)
		}
		folded.Periods = append(folded.Periods, fold.Period{Rule: s.Periods[name].Rule, Lateness: s.Periods[name].Lateness})
	}
	return folded, nil
}

func eventsOf(s *rules.Set) (event.Rules, error) {
	r := event.Rules{MaxEventBytes: int(s.MaxEventBytes), MaxFuture: s.MaxFuture}
	var byDefault codec.Field
	for i, name := range slices.Sorted(maps.Keys(s.Boards)) {
		rule := s.Boards[name].Rule
		field := rule.Fields.At(0)
		if i == 0 {
			byDefault = field
		}
		if rule.Score != rules.Sum || rule.Fields.Len() > 1 || field != byDefault || field.Name != "points" || !field.Signed || field.Fewest {
			return r, fmt.Errorf("board %.70q has a rule of its own", name)
		}
		r.MaxPoints = field.Max
		if name != rules.AnyBoard {
			r.Boards = append(r.Boards, name)
		}
	}
	if _, ok := s.Boards[rules.AnyBoard]; ok {
		if len(r.Boards) > 0 {
			return r, errors.New("boards that aren't named are allowed beside those that are")
		}
	}
	paths := event.Paths{}
	for name, path := range s.Fields {
		into := map[string]*string{
			"event_id": &paths.EventID, "user_id": &paths.UserID, "points": &paths.Points, "board": &paths.Board, "occurred_at": &paths.OccurredAt,
		}[name]
		if into == nil {
			return r, fmt.Errorf("there is no field %.40q of events", name)
		}
		*into = path
	}
	fields, err := event.NewFields(paths)
	if err != nil {
		return r, fmt.Errorf("event.fields: %w", err)
	}
	r.Fields = fields
	return r, nil
}
