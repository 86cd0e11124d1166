// Package top implements the commands top and rank: they show the first standings of a board, and the rank
// of a member.
package top

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/units"
)

// flags are those that top and rank share.
type flags struct {
	window string
	asJSON bool
	shards bool
}

func (f *flags) add(c *cobra.Command, p *cli.Program) {
	c.Flags().StringVar(&f.window, "window", windows.Current, windows.Help)
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&f.shards, "shards", false, "with --json: add the ledger of each shard")
	c.ValidArgsFunction = complete.BoardAndPeriod(p)
	complete.Flags(c, p)
}

func (f *flags) check() error {
	if f.shards && !f.asJSON {
		return cli.Usagef("--shards requires --json")
	}
	return nil
}

// Command returns the top command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	var watching cli.Watching
	var limit, offset int
	c := &cobra.Command{
		Use:   "top BOARD PERIOD",
		Short: "Show the top of a board",
		Long: `Shows the first members of a board in a window: most points first, equal points by who reached
them first. The current window is decided by Redis's clock. Times are in time_zone, with the
resolution of the layout.

Below the rows it reports what is missing: an incomplete window, a Redis that is being refilled,
events that are not counted yet. If Redis has lost the board, or it does not exist, the exit
code is 1.

With --watch it continues until interrupted (Ctrl-C, exit code 0). On a terminal it redraws
the board, with ▲ for members who climbed and ▼ for members who fell in the last seconds. Elsewhere it
writes the board after each change, as text after an empty line, or with --json as one document
per line. It follows the current window. While Redis is unavailable it keeps the last rows and
reports that, on stderr if there is no terminal.

Control characters in ids are escaped, except with --json.`,
		Example: `  consumer top global weekly
  consumer top global weekly --watch
  consumer top eu monthly --window previous --limit 100 --json`,
		Args: cli.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || offset < 0 || offset > math.MaxInt32 || limit > 1_000_000 {
				return cli.Usagef("--limit must be 1 to 1000000, and --offset at least 0")
			}
			if err := cmp.Or(f.check(), watching.Check(c.Flags())); err != nil {
				return err
			}
			r, period, err := openFor(c.Context(), p, args[0], args[1])
			if err != nil {
				return err
			}
			defer r.Close()
			read := func(ctx context.Context) (*board, error) {
				b, err := r.top(ctx, args[0], period, f.window, offset, limit)
				if err == nil && b.Listed && b.Lost == "" && len(b.Standings) == 0 {
					b.note = "no member has a rank above " + units.Thousands(int64(offset))
				}
				return b, err
			}
			if watching.On {
				return watch(p, &f, args[0]+" "+args[1], read).Run(c.Context(), p, watching.Every, f.asJSON)
			}
			b, err := read(c.Context())
			if err != nil {
				return err
			}
			return show(c.Context(), p, r, b, &f)
		},
	}
	c.Flags().IntVar(&limit, "limit", 10, "number of `members` to show")
	c.Flags().IntVar(&offset, "offset", 0, "number of `members` to skip")
	watching.Flags(c.Flags(), time.Second)
	f.add(c, p)
	return c
}

// defaultAround is the default number of members shown above and below a member in text.
const defaultAround = 2

// RankCommand returns the rank command for a program.
func RankCommand(p *cli.Program) *cobra.Command {
	var f flags
	var around int
	var shadow bool
	c := &cobra.Command{
		Use:   "rank BOARD PERIOD MEMBER",
		Short: "Show a member's rank",
		Long: `Shows a member's rank and points, when they were reached, and two members above and below. --around
sets that number; 0 shows the member alone. With --json it shows the member alone unless
--around is given, so standings[0] is the member. For a member without points in the window
the exit code is 0. It is 1 if Redis has lost the board or it does not exist. Put an id
that begins with a dash after --.

A banned member is not shown, except with --shadow: with the rank that they would have
without the ban.`,
		Example: `  consumer rank global weekly Kalobi
  consumer rank eu monthly Kalobi --around 5 --window previous
  consumer rank global weekly Kalobi --json`,
		Args: cli.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := windows.CheckMember(args[2]); err != nil {
				return err
			}
			given := c.Flags().Changed("around")
			switch {
			case around < 0 || around > 1000:
				return cli.Usagef("--around must be 0 to 1000")
			case shadow && given && around > 0:
				return cli.Usagef("--shadow excludes --around")
			case f.asJSON && !given:
				around = 0 // programs expect the member in the first standing
			}
			if err := f.check(); err != nil {
				return err
			}
			r, period, err := openFor(c.Context(), p, args[0], args[1])
			if err != nil {
				return err
			}
			defer r.Close()
			t, err := r.target(c.Context(), args[0], period, f.window)
			if err != nil {
				return err
			}
			b, err := r.rank(c.Context(), t, args[2], around, shadow)
			if err != nil {
				return err
			}
			if b.Standings[0].Rank == 0 && b.Listed && b.Lost == "" {
				b.note = "no event of this member has been counted in this window"
				if !shadow && r.Config.Kafka.BansTopic != "" {
					b.note += ", or they are banned: see --shadow"
				}
			}
			b.marked = args[2]
			return show(c.Context(), p, r, b, &f)
		},
	}
	c.Flags().IntVar(&around, "around", defaultAround, "number of `members` to show above and below (default 0 with --json or --shadow)")
	c.Flags().BoolVar(&shadow, "shadow", false, "show a banned member, with the rank that they would have")
	f.add(c, p)
	return c
}

// show writes a board, and returns an error if it is lost or does not exist.
func show(ctx context.Context, p *cli.Program, r *Reader, b *board, f *flags) error {
	var err error
	if f.asJSON {
		err = cli.WriteJSON(p.Stdout, reportOf(b, f.shards))
	} else {
		err = write(p.Stdout, b, b.notes())
	}
	return errors.Join(err, b.lost(), r.missing(ctx, b))
}

// openFor checks the arguments before it connects to Redis.
func openFor(ctx context.Context, p *cli.Program, board, period string) (*Reader, periods.Period, error) {
	l, err := p.Configuration()
	if err != nil {
		return nil, "", err
	}
	rule, err := windows.Check(l.Config, board, period)
	if err != nil {
		return nil, "", err
	}
	r, err := Open(ctx, l.Config)
	return r, rule.Name(), err
}
