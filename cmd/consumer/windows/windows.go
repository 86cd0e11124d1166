// Package windows finds the window that a command line selects: by board and period, and by its name or by
// Redis's clock.
package windows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/reading"
)

// The names of windows relative to Redis's clock.
const (
	Current  = reading.Current
	Previous = reading.Previous
)

// Help is the help text of a flag that selects a window.
const Help = "`window`: current, previous, or a name such as 2026-W47, 2026-11 or 2026"

// Check returns the period of this name, if it is enabled and the board has windows of it. It returns an
// error for a board that no event can name.
func Check(cfg *config.Config, board, period string) (periods.Rule, error) {
	if err := checkBoard(cfg, board); err != nil {
		return periods.Rule{}, err
	}
	kept, err := Enabled(cfg, period)
	if err != nil {
		return periods.Rule{}, err
	}
	if !cfg.Has(board, kept.Name()) {
		return periods.Rule{}, cli.Usagef("board %s has no %s windows: see periods of it in boards", board, period)
	}
	return kept, nil
}

func checkBoard(cfg *config.Config, board string) error {
	if err := config.CheckBoard(board); err != nil {
		return cli.Usagef("%q %w", board, err)
	}
	if len(cfg.Boards) > 0 && !slices.Contains(cfg.Boards, board) {
		return cli.Usagef("unknown board %q: boards is %s", board, strings.Join(cfg.Boards, ", "))
	}
	return nil
}

// Enabled returns the period of this name, if it is enabled.
func Enabled(cfg *config.Config, name string) (periods.Rule, error) {
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
	return periods.Rule{}, cli.Usagef("period %s is not enabled (periods.%s.enabled); use %s", name, name, strings.Join(kept, ", "))
}

// CheckMember returns an error for a member id that no event can have.
func CheckMember(member string) error {
	if len(member) < 1 || len(member) > 256 {
		return cli.Usagef("a member's id has 1 to 256 bytes, not %d", len(member))
	}
	return nil
}

// Find finds a window by name: current, previous, or the window's own name. For a season that is over,
// current is the last window.
func Find(ctx context.Context, r *app.Reader, p *periods.Rule, name string) (w periods.Window, err error) {
	settled, err := r.Boards.SettledBorders(ctx)
	if err != nil {
		return w, app.ExplainRedis(ctx, err, r.Config)
	}
	rule := p.By(settled)
	var now time.Time
	if name == Current || name == Previous {
		if now, err = r.Boards.Now(ctx); err != nil {
			return w, app.ExplainRedis(ctx, err, r.Config)
		}
	}
	w, err = reading.Meant(&rule, name, now)
	if missing, ok := errors.AsType[*reading.NotFoundError](err); ok {
		return w, cli.Usagef("%w", missing)
	}
	return w, err
}
