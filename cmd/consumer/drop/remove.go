package drop

// This file removes all keys under an unused prefix, or some boards while everything else continues.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// pause is the pause after each call, in which Redis frees the keys in the background.
const pause = 5 * time.Millisecond

// watchTime is how long drop watches the prefix for signs of a consumer. A consumer that has just started
// and has nothing to count only writes its status lines.
const watchTime = inventory.ReportEvery + 2*time.Second

// drop removes keys under a prefix.
type drop struct {
	program *cli.Program
	cfg     *config.Config
	view    *inventory.View
	prefix  string
	boards  []string // patterns; nil: all keys, including those that belong to no board
}

// checkBoards checks names and patterns; a pattern is a prefix followed by *.
func checkBoards(patterns []string) error {
	for _, pattern := range patterns {
		name, all := strings.CutSuffix(pattern, "*")
		if name == "" && all {
			return cli.Usagef("--board %q is every board: use --prefix without --board", pattern)
		}
		if err := config.CheckBoard(name); err != nil {
			return cli.Usagef("--board %q %w", pattern, err)
		}
	}
	return nil
}

// matches reports whether a pattern matches a board.
func matches(patterns []string, board string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		name, all := strings.CutSuffix(pattern, "*")
		return board == name || all && strings.HasPrefix(board, name)
	})
}

// named returns the patterns as they were typed.
func (d *drop) named() string { return strings.Join(d.boards, ",") }

func (d *drop) survey(ctx context.Context) (*inventory.Found, error) {
	if d.boards == nil {
		return d.view.Survey(ctx)
	}
	return d.view.SurveyBoards(ctx, func(board string) bool { return matches(d.boards, board) })
}

// unused returns an error if a consumer uses the prefix. Single boards may be dropped while a consumer
// runs.
func (d *drop) unused(ctx context.Context, f *inventory.Found) error {
	switch {
	case d.boards != nil:
		return nil
	case len(f.Used) > 0:
		owners := slices.Sorted(maps.Values(f.Used))
		return fmt.Errorf("%s is in use: %s reported within the last 30 seconds, for %s. Stop them and wait that long; nothing was removed",
			d.prefix, plain(slices.Compact(owners)), units.Plural(int64(len(f.Used)), "partition"))
	case f.Rebuilding:
		return fmt.Errorf("%s is in use: a rebuild is running, or was killed less than a minute ago; nothing was removed", d.prefix)
	}
	if retry.Sleep(ctx, watchTime) != nil {
		return errInterrupted
	}
	moves, err := d.view.Moves(ctx, f)
	if err != nil {
		return untouched(ctx, err, d.cfg)
	}
	if moves {
		return fmt.Errorf("%s is in use by a consumer. Stop it and wait half a minute; nothing was removed", d.prefix)
	}
	return nil
}

// remove removes the found keys or windows, and those written meanwhile.
func (d *drop) remove(ctx context.Context, found *inventory.Found) error {
	unit, removed, began := "key", int64(0), time.Now()
	if d.boards != nil {
		unit = "window"
	}
	var done atomic.Int64
	for range 3 {
		before := removed
		bar := terminal.ShowProgress(d.program.Stderr, "removed", unit+"s", before+int64(found.Keys), done.Load)
		n, err := d.removeOnce(ctx, found, func(n int) { done.Store(before + int64(n)) })
		bar.Stop()
		removed += n
		so := units.Plural(removed, unit) + " removed"
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: %s; the same command removes the rest", so)
		case errors.Is(err, ranking.ErrRebuilding):
			return fmt.Errorf("%w under %s, and would bring them back: wait for it; %s", ranking.ErrRebuilding, d.prefix, so)
		case err != nil:
			return app.ExplainRedis(ctx, err, d.cfg)
		}
		if found, err = d.survey(ctx); err != nil {
			return app.ExplainRedis(ctx, err, d.cfg)
		}
		if found.Keys == 0 {
			took := time.Since(began).Round(time.Millisecond)
			if d.boards != nil {
				fmt.Fprintf(d.program.Stdout, "Dropped %s in %s.\n", units.Plural(removed, unit), took)
			} else {
				fmt.Fprintf(d.program.Stdout, "Removed %s in %s: nothing is left under %s.\n", units.Plural(removed, unit), took, d.prefix)
			}
			return nil
		}
		if len(found.Used) > 0 || found.Rebuilding { // without the listing, a waiting consumer starts
			return fmt.Errorf("%s was used during the removal: newer keys are left (%s). Stop the consumers and wait half a minute",
				d.prefix, units.Plural(int64(found.Keys), "key"))
		}
	}
	if d.boards != nil {
		return fmt.Errorf("%s dropped, and events open others of %s: name the boards that there may be in `boards`, or stop who publishes them", units.Plural(removed, unit), d.named())
	}
	return fmt.Errorf("%s of %s are back: something writes them", units.Plural(int64(found.Keys), "key"), d.prefix)
}

func (d *drop) removeOnce(ctx context.Context, found *inventory.Found, progress func(done int)) (int64, error) {
	if d.boards != nil {
		return d.view.DropBoards(ctx, found, pause, progress)
	}
	gone := 0
	err := d.view.Drop(ctx, found, pause, func(n int) {
		gone = n
		progress(n)
	})
	return int64(gone), err
}
