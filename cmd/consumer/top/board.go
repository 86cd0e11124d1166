package top

// A board as `consumer top` and `consumer rank` read it: which window is meant,
// and what Redis holds of it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Reader reads boards.
type Reader struct{ *clients.Reader }

// Open dials Redis. Close closes it.
func Open(ctx context.Context, cfg *config.Config) (*Reader, error) {
	r, err := clients.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Reader{r}, nil
}

// checkBoard refuses a board that no event can name.
func checkBoard(cfg *config.Config, board string) error {
	if err := config.CheckBoard(board); err != nil {
		return cli.Usagef("%q %w", board, err)
	}
	if len(cfg.Boards) > 0 && !slices.Contains(cfg.Boards, board) {
		return cli.Usagef("there is no board %q: boards is %s", board, strings.Join(cfg.Boards, ", "))
	}
	return nil
}

// checkPeriod refuses a period whose windows a board doesn't have.
func checkPeriod(cfg *config.Config, board string, p periods.Period) error {
	if !cfg.Has(board, p) {
		return cli.Usagef("board %s has no %s windows: see periods of it in boards", board, p)
	}
	return nil
}

// enabledPeriod finds a period that is kept.
func enabledPeriod(cfg *config.Config, name string) (periods.Rule, error) {
	if err := cfg.KnowsPeriod(name); err != nil {
		return periods.Rule{}, cli.Usagef("%w", err)
	}
	var kept []string
	for i := range cfg.Periods {
		p := &cfg.Periods[i]
		if p.Enabled && string(p.Name) == name {
			return cfg.Rule(p)
		}
		if p.Enabled {
			kept = append(kept, string(p.Name))
		}
	}
	return periods.Rule{}, cli.Usagef("%s boards aren't kept: periods.%s.enabled is false; there are %s", name, name, strings.Join(kept, ", "))
}

// zoneOf is the zone that a period's times are shown in: its calendar's, or that of the
// configuration.
func zoneOf(cfg *config.Config, name periods.Period) string {
	for _, p := range cfg.Periods {
		if p.Name == name && p.Own != nil && p.Own.TimeZone != "" {
			return p.Own.TimeZone
		}
	}
	return cfg.TimeZone
}

// Windows that are meant relative to Redis's clock.
const (
	windowCurrent  = "current"
	windowPrevious = "previous"
)

// window finds the one that a name means: current, previous, or a window's own. Of a season
// that is over the current one is the last there was.
func (r *Reader) window(ctx context.Context, p *periods.Rule, name string) (periods.Window, error) {
	if name != windowCurrent && name != windowPrevious {
		w, err := p.Named(name)
		if err != nil {
			return periods.Window{}, cli.Usagef("%w; or current, or previous", err)
		}
		return w, nil
	}
	now, err := r.Boards.Now(ctx)
	if err != nil {
		return periods.Window{}, clients.ExplainRedis(ctx, err, r.Config)
	}
	w, ok, err := p.Latest(now.UnixMilli())
	switch {
	case err != nil:
		return periods.Window{}, fmt.Errorf("the clock of Redis says %s: %w", now.UTC().Format(time.RFC3339), err)
	case !ok:
		first, _ := p.First() // or it would have begun
		return periods.Window{}, cli.Usagef("%s hasn't begun: its first window, %s, starts at %s", p.Name(), first.Name, time.UnixMilli(first.Start).UTC().Format(time.RFC3339))
	}
	if name == windowCurrent {
		return w, nil
	}
	before, ok := p.Previous(w)
	if !ok {
		return periods.Window{}, cli.Usagef("there is no %s window before %s", p.Name(), w.Name)
	}
	return before, nil
}

// read makes a board of what the store answers. A prefix under which there is nothing is
// an empty board: a consumer may just not have begun.
func (r *Reader) read(ctx context.Context, found ranking.Board, err error) (ranking.Board, error) {
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok && other.Found == "" {
		return found, nil
	}
	if err != nil {
		return ranking.Board{}, clients.ExplainRedis(ctx, err, r.Config)
	}
	return found, nil
}

// top reads a page of a board.
func (r *Reader) top(ctx context.Context, board string, w periods.Window, offset, limit int) (ranking.Board, error) {
	b, err := r.Boards.Top(ctx, board, w, offset, limit)
	if b, err = r.read(ctx, b, err); err != nil {
		return b, err
	}
	return b, r.name(ctx, &b)
}

// Leaders are the first members of a board in the current window of a period. A board that
// Redis has lost is an error.
func (r *Reader) Leaders(ctx context.Context, name string, p periods.Period, limit int) (ranking.Board, error) {
	rule, err := enabledPeriod(r.Config, string(p))
	if err != nil {
		return ranking.Board{}, err
	}
	w, err := r.window(ctx, &rule, windowCurrent)
	if err != nil {
		return ranking.Board{}, err
	}
	found, err := r.top(ctx, name, w, 0, limit)
	if err != nil {
		return ranking.Board{}, err
	}
	b := r.shown(found)
	return found, b.lost()
}

// rank reads a member's row, and what is read with it, as of one moment.
func (r *Reader) rank(ctx context.Context, member string, read func() (ranking.Board, error)) (ranking.Board, error) {
	b, err := read()
	if b, err = r.read(ctx, b, err); err != nil {
		return b, err
	}
	if len(b.Standings) == 0 {
		b.Standings = []ranking.Standing{{Member: member}}
	}
	return b, r.name(ctx, &b)
}

// name says what the members are called, where names are counted.
func (r *Reader) name(ctx context.Context, b *ranking.Board) error {
	if r.Config.Fields.Name == "" {
		return nil
	}
	if err := r.Boards.Name(ctx, b); err != nil {
		return clients.ExplainRedis(ctx, err, r.Config)
	}
	return nil
}
