package top

// This file implements the command rank, which shows the rank of a member.

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/reading"
)

// defaultAround is the default number of members shown above and below a member in text.
const defaultAround = 2

// RankCommand returns the rank command for a program.
func RankCommand(p *cli.Program) *cobra.Command {
	var window string
	var around int
	var asJSON, shards, shadow bool
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
		Args:              cli.ExactArgs(3),
		ValidArgsFunction: complete.BoardAndPeriod(p),
		RunE: func(c *cobra.Command, args []string) error {
			member := args[2]
			if err := windows.CheckMember(member); err != nil {
				return err
			}
			if around < 0 || around > 1000 {
				return cli.Usagef("--around must be 0 to 1000")
			}
			if shards && !asJSON {
				return cli.Usagef("--shards requires --json")
			}
			given := c.Flags().Changed("around")
			if shadow && given && around > 0 {
				return cli.Usagef("--shadow excludes --around")
			}
			if asJSON && !given {
				around = 0 // programs expect the member in the first standing
			}
			return show(c.Context(), p, args[0], args[1], window, func(r *Reader, t reading.Target) error {
				shown, err := r.rank(c.Context(), t, member, around, shadow)
				if err != nil {
					return err
				}
				return r.show(c.Context(), &shown, func() error {
					if asJSON {
						return cli.WriteJSON(p.Stdout, reportOf(&shown, t.Period.Zone, shards))
					}
					text := newText(p.Stdout, t.Period.Zone)
					text.marked = member
					none := ""
					if shown.Standings[0].Rank == 0 && shown.Listed && shown.Lost == "" {
						none = "no event of this member has been counted in this window"
						if !shadow && r.Config.Kafka.BansTopic != "" {
							none += ", or they are banned: see --shadow"
						}
					}
					return text.write(&shown, none)
				})
			})
		},
	}
	c.Flags().StringVar(&window, "window", windows.Current, windows.Help)
	c.Flags().IntVar(&around, "around", defaultAround, "number of `members` to show above and below (default 0 with --json or --shadow)")
	c.Flags().BoolVar(&shadow, "shadow", false, "show a banned member, with the rank that they would have")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&shards, "shards", false, shardsHelp)
	complete.Flags(c, p)
	return c
}

// show finds the window for top or rank, and shows it.
func show(ctx context.Context, p *cli.Program, board, period, window string, show func(*Reader, reading.Target) error) error {
	r, kept, err := openFor(ctx, p, board, period)
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := r.target(ctx, board, kept.Name(), window)
	if err != nil {
		return err
	}
	return show(r, t)
}

// openFor checks the arguments before it connects to Redis.
func openFor(ctx context.Context, p *cli.Program, board, period string) (*Reader, periods.Rule, error) {
	l, err := p.Configuration()
	if err != nil {
		return nil, periods.Rule{}, err
	}
	kept, err := windows.Check(l.Config, board, period)
	if err != nil {
		return nil, periods.Rule{}, err
	}
	r, err := Open(ctx, l.Config)
	return r, kept, err
}
