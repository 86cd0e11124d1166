// Package diff is the command diff: what differs between the standings under two prefixes.
package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/diff"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

const (
	// most is how many standings that differ are kept.
	most = 1_000_000
	// pause is left to Redis between two pages of a board.
	pause = time.Millisecond
	// again is the wait before standings that differ are read again.
	again = 300 * time.Millisecond
)

type flags struct {
	with                     string
	boards, periods, windows []string
	limit                    int
	asJSON                   bool
}

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "diff --with PREFIX",
		Short: "Compare the standings with those under another prefix",
		Long: `Compares the standings under the configured prefix with those under another one in
the same Redis: the points of every member of every window, and when they were
reached. How each was written is read from Redis, so the two can have other layouts,
whose times are compared to the coarser tick, and other numbers of shards. Windows that
the two cut otherwise (by another time zone or week start) can't be compared, and are
named. Members of windows that differ are listed, with both standings.

Both can be written meanwhile: what differs is read again a few times. A window is exact
if both ledgers, of all shards, were at the same positions before and after; else what
differs may be of events that one of the two has not counted yet.

What is compared is what is shown: hidden standings of banned members aren't, and who is
banned under one prefix alone is only in the other.

The exit code is 0 if all is equal, 1 if something differs, and 2 if that isn't known:
because a window couldn't be compared, a --board, --period or --window is in neither,
Redis couldn't be read, or the command line or the configuration is wrong.`,
		Example: `  consumer diff --with lb2
  consumer diff --with lb2 --limit 20 --board eu --period weekly`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if err := f.check(l.Config); err != nil {
				return err
			}
			if err = run(c.Context(), p, l.Config, &f); err != nil && !errors.Is(err, errDiffer) {
				return cli.NoAnswer(err)
			}
			return err
		},
	}
	c.Flags().StringVar(&f.with, "with", "", "the other `prefix`")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "compare this `board` alone; can be repeated")
	c.Flags().StringArrayVar(&f.periods, "period", nil, "compare windows of this `period` alone; can be repeated")
	c.Flags().StringArrayVar(&f.windows, "window", nil, "compare the `window` of this name alone, as 2026-W47; can be repeated")
	c.Flags().IntVar(&f.limit, "limit", 100, "list so many `standings` at most")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

func (f *flags) check(cfg *config.Config) error {
	switch {
	case f.with == "":
		return cli.Usagef("--with has to name the other prefix")
	case f.with == cfg.Redis.Prefix:
		return cli.Usagef("--with %s is the configured prefix itself", f.with)
	case f.limit < 1 || f.limit > most:
		return cli.Usagef("--limit has to be 1 to %d", most)
	}
	if err := config.CheckPrefix(f.with); err != nil {
		return cli.Usagef("--with %q %w", f.with, err)
	}
	for _, board := range f.boards {
		if err := config.CheckBoard(board); err != nil {
			return cli.Usagef("--board %q %w", board, err)
		}
	}
	for _, period := range f.periods {
		if err := cfg.KnowsPeriod(period); err != nil {
			return cli.Usagef("--period: %w", err)
		}
	}
	return nil
}

func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	zone, err := zoneinfo.Load(cfg.TimeZone)
	if err != nil {
		return fmt.Errorf("time_zone: %w", err)
	}
	client, err := app.NewReadingRedis(cfg)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	r := &report{A: cfg.Redis.Prefix, B: f.with, Equal: true, Positions: []position{}, Windows: []window{}, Standings: []standing{}, zone: zone}
	d := &diff.Prefixes{Boards: f.boards, Periods: f.periods, Windows: f.windows, Most: most, Pause: pause, Again: again}
	if d.A, err = view(ctx, cfg, client, cfg.Redis.Prefix); err != nil {
		return err
	}
	if d.B, err = view(ctx, cfg, client, f.with); err != nil {
		return err
	}
	if r.windows, err = d.Run(ctx); err != nil {
		return app.ExplainRedis(ctx, err, cfg)
	}
	if err := f.matched(r.windows); err != nil {
		return err
	}
	for i := range r.windows {
		r.listed = append(r.listed, r.windows[i].Members...)
	}
	r.listed = r.listed[:min(f.limit, len(r.listed))]
	if cfg.Fields.Name != "" {
		if err := ranking.NameDifferences(ctx, r.listed, d.A.Stores(), d.B.Stores()); err != nil {
			return app.ExplainRedis(ctx, err, cfg)
		}
	}
	if r.positions, err = d.Positions(ctx); err != nil {
		return app.ExplainRedis(ctx, err, cfg)
	}
	r.fill()
	if f.asJSON {
		err = cli.WriteJSON(p.Stdout, r)
	} else {
		err = r.write(p.Stdout)
	}
	if err != nil {
		return fmt.Errorf("write what differs: %w", err)
	}
	return r.verdict()
}

// matched refuses a name that no window has: that nothing differs where nothing was compared could be
// taken for equality.
func (f *flags) matched(windows []diff.Window) error {
	for _, by := range []struct {
		flag  string
		names []string
		of    func(*diff.Window) string
	}{
		{"board", f.boards, func(w *diff.Window) string { return w.Board }},
		{"period", f.periods, func(w *diff.Window) string { return w.Period }},
		{"window", f.windows, func(w *diff.Window) string { return w.Name }},
	} {
		for _, name := range by.names {
			has := func(w diff.Window) bool { return by.of(&w) == name } //nolint:gocritic // few
			if !slices.ContainsFunc(windows, has) {
				return cli.Usagef("--%s %s: under neither prefix is there such a window", by.flag, name)
			}
		}
	}
	return nil
}

// errDiffer is an answer, unlike every other error.
var errDiffer = errors.New("the standings differ")

// verdict is the error for what was found. That it isn't all known counts for more than
// that something differs.
func (r *report) verdict() error {
	uncompared := int64(0)
	for i := range r.windows {
		if r.windows[i].Why != "" {
			uncompared++
		}
	}
	switch {
	case uncompared > 0:
		return fmt.Errorf("%s couldn't be compared", units.Plural(uncompared, "window"))
	case !r.Equal:
		return errDiffer
	}
	return nil
}

func view(ctx context.Context, cfg *config.Config, client redis.UniversalClient, prefix string) (*ranking.View, error) {
	v, err := ranking.NewView(ctx, client, prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok {
		return nil, other
	}
	if err != nil && v != nil {
		return nil, err // it says whose schema
	}
	return v, app.ExplainRedis(ctx, err, cfg)
}
