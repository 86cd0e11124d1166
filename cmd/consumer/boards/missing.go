package boards

// This file makes the errors for boards and windows that do not exist. They suggest what exists.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/periods"
	shards "github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/units"
)

// noBoard returns the error for a board or a pattern for which no window is listed. It suggests boards whose
// names are similar to what was typed.
func noBoard(cfg *config.Config, all []shards.Listed, typed string) error {
	var names []string
	for _, w := range all {
		names = append(names, w.Board)
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no board %s: no event has been counted under the prefix %q", typed, cfg.Redis.Prefix)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	near := config.Nearest(strings.TrimSuffix(typed, "*"), names, len(names))
	return fmt.Errorf("there is no board %s under the prefix %q; there %s; \"consumer boards\" lists them", typed, cfg.Redis.Prefix, are(near))
}

// NoWindow returns the error for a window that is not listed. It names the windows of the same board and
// period if there are any, the latest first, else the board's windows, else the boards that exist.
func NoWindow(ctx context.Context, r *app.Reader, board string, w periods.Window) error {
	all, err := r.Boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	sortWindows(all)
	var names, latest []string
	for _, l := range all {
		if l.Board == board {
			names = append(names, l.Period+" "+l.Name)
		}
		if l.Board == board && l.Period == string(w.Period) {
			latest = append(latest, l.Name)
		}
	}
	if len(names) == 0 {
		return noBoard(r.Config, all, board)
	}
	if len(latest) > 0 {
		slices.Reverse(latest)
		names = latest
	}
	return fmt.Errorf("no event has been counted in %s %s %s, or its retention is over; there %s; \"consumer boards %s\" lists them",
		board, w.Period, w.Name, are(names), board)
}

// are returns a list of names with the verb for a sentence.
func are(names []string) string {
	if len(names) == 1 {
		return "is " + names[0]
	}
	return "are " + units.Names(names)
}
