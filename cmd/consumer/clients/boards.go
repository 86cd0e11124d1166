package clients

// Boards by rules of their own, and with periods of their own, in the text of the rules.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/rules"
)

// addBoards puts the boards of the section, and where their fields stand, into a set.
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

// Counting reads the text of a set as ReadRules does, boards by rules of their own among them. What
// isn't in the text is in the schema, which every replica has alike: max_points and layouts.
func Counting(text string, cfg *config.Config) (ingest.Counting, error) {
	s, err := rules.Parse(text)
	if err != nil {
		return ingest.Counting{}, err
	}
	usual := slices.Collect(maps.Keys(s.Periods))
	special := func(b rules.Board) bool {
		return !b.Rule.IsDefault(cfg.MaxPoints) || len(b.Periods) != len(usual)
	}
	_, others := s.Boards[rules.AnyBoard]
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.Boards)), special) && (!others || len(s.Boards) == 1) {
		return ReadRules(text, cfg.Retentions())
	}
	c := ingest.Counting{Duplicates: s.Duplicates}
	c.Events = event.Rules{MaxEventBytes: int(s.MaxEventBytes), MaxFuture: s.MaxFuture, MaxPoints: cfg.MaxPoints}
	var order []periods.Period
	kinds := map[periods.Period]codec.Kind{}
	for _, p := range cfg.Kept() {
		of, ok := s.Periods[p.Name]
		if !ok {
			continue
		}
		order, kinds[p.Name] = append(order, p.Name), codec.Kind(p.Layout)
		c.Windows.Periods = append(c.Windows.Periods, fold.Period{Rule: of.Rule, Lateness: of.Lateness})
	}
	if len(order) != len(s.Periods) {
		return ingest.Counting{}, fmt.Errorf("of the periods %v only %v are enabled here", usual, order)
	}
	known, names := map[rules.Rule]*rules.Rule{}, []string(nil)
	c.Windows.Boards = map[string]*fold.Board{}
	byRule := rules.Boards{}
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
		for _, p := range b.Periods {
			board.Periods |= 1 << slices.Index(order, p)
			cut := s.Periods[p].Rule
			l, err := codec.NewTupleLayout(kinds[p], cut.Length(), b.Rule.Fields)
			if err != nil {
				return ingest.Counting{}, fmt.Errorf("board %.70q: its %s scores: %w", name, p, err)
			}
			board.Ticks[p] = l.Tick
		}
		c.Windows.Boards[name], byRule[name] = board, board.Rule
		if !others {
			c.Events.Boards = append(c.Events.Boards, name)
		}
	}
	if len(known) > 0 {
		c.Events.Others = byRule
	}
	f := s.Fields
	paths := event.Paths{EventID: f["event_id"], UserID: f["user_id"], Points: f["points"], Board: f["board"], OccurredAt: f["occurred_at"]}
	var more []event.Other
	slices.Sort(names)
	for _, name := range names {
		more = append(more, event.Other{Name: name, Path: f[name]})
	}
	for name := range f {
		if !event.IsOwn(name) && !slices.Contains(names, name) {
			return ingest.Counting{}, fmt.Errorf("there is no field %.40q of events", name)
		}
	}
	if c.Events.Fields, err = event.NewFields(paths, more...); err != nil {
		return ingest.Counting{}, fmt.Errorf("event.fields: %w", err)
	}
	return c, nil
}
