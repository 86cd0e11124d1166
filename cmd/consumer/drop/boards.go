package drop

// Some boards dropped, while everything else goes on.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// checkBoards checks names, and patterns: the beginning of a name with a * behind it.
func checkBoards(patterns []string) error {
	for _, pattern := range patterns {
		name, all := strings.CutSuffix(pattern, "*")
		if name == "" && all {
			return cli.Usagef("--board %q is every board: for that there is --prefix without --board", pattern)
		}
		if err := config.CheckBoard(name); err != nil {
			return cli.Usagef("--board %q %w", pattern, err)
		}
	}
	return nil
}

// matches reports whether a board is meant.
func matches(patterns []string, board string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		name, all := strings.CutSuffix(pattern, "*")
		return board == name || all && strings.HasPrefix(board, name)
	})
}

func runBoards(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	if !f.yes && !asks(p) {
		return cli.Usagef("there is no terminal to ask on: say --yes")
	}
	client, err := clients.NewRedis(cfg, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	v, err := ranking.NewView(ctx, client, f.prefix, cfg.Redis.Timeout)
	if err != nil {
		return untouched(ctx, err, cfg)
	}
	which := strings.Join(f.boards, ",")
	survey := func() (*ranking.Found, error) {
		return v.SurveyBoards(ctx, func(board string) bool { return matches(f.boards, board) })
	}
	found, err := survey()
	if err != nil {
		return untouched(ctx, err, cfg)
	}
	if found.Windows == 0 {
		return fmt.Errorf("no window is listed of %s under the prefix %s: nothing was dropped", which, f.prefix)
	}
	if err := terminal.Write(p.Stdout, what(f.prefix, found)); err != nil {
		return fmt.Errorf("write what would be dropped: %w; nothing was dropped", err)
	}
	if !f.yes {
		if err := ask(ctx, p, "To drop these boards, type "+which+": ", which, which); err != nil {
			return err
		}
	}
	var done atomic.Int64
	began, dropped := time.Now(), int64(0)
	for range 3 { // what is opened meanwhile, too
		bar := terminal.ShowProgress(p.Stderr, "dropped", "windows", int64(found.Windows), done.Load)
		n, err := v.DropBoards(ctx, found, pause, func(n int) { done.Store(int64(n)) })
		bar.Stop()
		dropped += n
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: %s dropped; the same command drops the rest", units.Plural(dropped, "window"))
		case errors.Is(err, ranking.ErrRebuilding):
			return fmt.Errorf("%w under %s, and would bring them back: wait for it; %s dropped", ranking.ErrRebuilding, f.prefix, units.Plural(dropped, "window"))
		case err != nil:
			return clients.ExplainRedis(ctx, err, cfg)
		}
		if found, err = survey(); err != nil {
			return clients.ExplainRedis(ctx, err, cfg)
		}
		if found.Windows == 0 {
			fmt.Fprintf(p.Stdout, "Dropped %s in %s.\n", units.Plural(dropped, "window"), time.Since(began).Round(time.Millisecond))
			return nil
		}
	}
	return fmt.Errorf("%s dropped, and events open others of %s: name the boards that there may be in `boards`, or stop who publishes them", units.Plural(dropped, "window"), which)
}
