package boards

// This file makes the errors for boards and windows that do not exist. They suggest what exists.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/periods"
	shards "github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/units"
)

// NoBoard returns the error for a board or a pattern for which no window is listed. It suggests boards
// whose names are similar to what was typed.
func NoBoard(ctx context.Context, r *app.Reader, typed string) error {
	all, err := r.Boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	return noBoard(r.Config, all, typed)
}

func noBoard(cfg *config.Config, all []shards.Listed, typed string) error {
	names := map[string]bool{}
	for _, w := range all {
		names[w.Board] = true
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no board %s: no event has been counted under the prefix %q", typed, cfg.Redis.Prefix)
	}
	near := config.Nearest(strings.TrimSuffix(typed, "*"), slices.Collect(maps.Keys(names)), len(names))
	return fmt.Errorf("there is no board %s under the prefix %q; there %s; \"consumer boards\" lists them", typed, cfg.Redis.Prefix, are(near))
}

// NoWindow returns the error for a window that is not listed. It names the windows of the same board and
// period if there are any, else the board's windows, else the boards that exist.
func NoWindow(ctx context.Context, r *app.Reader, board string, w periods.Window) error {
	all, err := r.Boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(l shards.Listed) bool { return l.Board != board })
	if len(mine) == 0 {
		return noBoard(r.Config, all, board)
	}
	sortWindows(mine)
	what := fmt.Sprintf("no event has been counted in %s %s %s, or its retention is over", board, w.Period, w.Name)
	same := slices.DeleteFunc(slices.Clone(mine), func(l shards.Listed) bool { return l.Period != string(w.Period) })
	var names []string
	for _, l := range slices.Backward(same) { // the latest first
		if l.Name == w.Name { // its first event was counted between the two reads
			return fmt.Errorf("%s %s %s was created meanwhile: run the command again", board, w.Period, w.Name)
		}
		names = append(names, l.Name)
	}
	if len(names) == 0 {
		for _, l := range mine {
			names = append(names, l.Period+" "+l.Name)
		}
	}
	return fmt.Errorf("%s; there %s; \"consumer boards %s\" lists them", what, are(names), board)
}

// are returns a list of names with the verb for a sentence.
func are(names []string) string {
	if len(names) == 1 {
		return "is " + names[0]
	}
	return "are " + units.Names(names)
}
