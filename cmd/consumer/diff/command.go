// Package diff implements the command diff: it compares the standings under two prefixes.
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
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

const (
	// most is the maximum number of differing standings that are kept.
	most = 1_000_000
	// pause is the pause between two pages of a board, so that Redis can serve other clients.
	pause = time.Millisecond
	// again is the delay before standings that differ are read again.
	again = 300 * time.Millisecond
)

type flags struct {
	with                     string
	boards, periods, windows []string
	limit                    int
	asJSON                   bool
}

// Command returns the diff command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "diff --with PREFIX",
		Short: "Compare boards with those of another prefix",
		Long: `Compares the standings of the configured prefix with those of another one in the same Redis: the
points of every member in every window, and when they were reached. The two can have
different layouts, whose times are compared at the coarser tick, and different numbers of
shards. Windows with different bounds (another time zone or week start) cannot be compared
and are listed. Standings that differ are listed with both values.

Both can be written meanwhile: differences are read again a few times. A window is exact if both
ledgers, of all shards, were at the same positions before and after. Otherwise a
difference may be an event that one side has not counted yet.

It compares what readers see, so members banned under one prefix only are missing there.

The exit code is 0 if all is equal, 1 if something differs, and 2 if that is unknown: a window
could not be compared, a --board, --period or --window is under neither prefix, Redis could not
be read, or the command line or configuration is invalid.`,
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
	c.Flags().StringVar(&f.with, "with", "", "`prefix` to compare with")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "compare only this `board`; can be repeated")
	c.Flags().StringArrayVar(&f.periods, "period", nil, "compare only this `period`; can be repeated")
	c.Flags().StringArrayVar(&f.windows, "window", nil, "compare only this `window`, such as 2026-W47; can be repeated")
	c.Flags().IntVar(&f.limit, "limit", 100, "maximum number of `standings` to list")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

func (f *flags) check(cfg *config.Config) error {
	switch {
	case f.with == "":
		return cli.Usagef("--with is required")
	case f.with == cfg.Redis.Prefix:
		return cli.Usagef("--with %s must not be the configured prefix", f.with)
	case f.limit < 1 || f.limit > most:
		return cli.Usagef("--limit must be 1 to %d", most)
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
		return fmt.Errorf("write the differences: %w", err)
	}
	return r.verdict()
}

// matched rejects a name that matches no window: without a comparison, "no difference" could be mistaken
// for equality.
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
				return cli.Usagef("--%s %s: neither prefix has such a window", by.flag, name)
			}
		}
	}
	return nil
}

// errDiffer is the answer that standings differ; all other errors mean that there is no answer.
var errDiffer = errors.New("the standings differ")

// verdict returns the error for the result. That a window could not be compared takes precedence over a
// difference.
func (r *report) verdict() error {
	uncompared := int64(0)
	for i := range r.windows {
		if r.windows[i].Why != "" {
			uncompared++
		}
	}
	switch {
	case uncompared > 0:
		return fmt.Errorf("%s could not be compared", units.Plural(uncompared, "window"))
	case !r.Equal:
		return errDiffer
	}
	return nil
}

func view(ctx context.Context, cfg *config.Config, client redis.UniversalClient, prefix string) (*inventory.View, error) {
	v, err := inventory.NewView(ctx, client, prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if err != nil && v != nil {
		return nil, err // the error names the prefix and its schema
	}
	return v, app.ExplainRedis(ctx, err, cfg)
}
