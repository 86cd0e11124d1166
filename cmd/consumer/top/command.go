// Package top is the commands top and rank: the first standings of a board, and where one
// member stands on it.
package top

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/periods"
)

const shardsHelp = "with --json: add what counts in each shard, by its ledger"

// Command is the command top, for a program.
func Command(p *cli.Program) *cobra.Command {
	var window string
	var limit, offset int
	var asJSON, shards bool
	c := &cobra.Command{
		Use:   "top BOARD PERIOD",
		Short: "Show who leads a board",
		Long: `Shows the first members of a board in a window: most points first, and of equal
ones who reached them first. Redis's clock decides which window is the
current one. Times are those of time_zone, as exact as the layout of the scores.

What is missing is reported below the rows: a window that is incomplete, a Redis that was
lost and is being refilled, events that aren't counted yet. A board that Redis has
lost is an error, and so is one that isn't there, with the nearest that are: the exit
code is 1.

Control characters and the like in a member's id are shown escaped; with --json
the id is as it is.`,
		Example: `  consumer top global weekly
  consumer top eu monthly --window previous --limit 100 --json`,
		Args: cli.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || offset < 0 || offset > math.MaxInt32 || limit > 1_000_000 {
				return cli.Usagef("--limit has to be 1 to 1000000, and --offset 0 or more")
			}
			if shards && !asJSON {
				return cli.Usagef("--shards is for --json")
			}
			return show(c.Context(), p, args[0], args[1], window, func(r *Reader, w periods.Window) error {
				b, err := r.top(c.Context(), args[0], w, offset, limit)
				if err != nil {
					return err
				}
				shown := r.shown(b)
				return r.show(c.Context(), &shown, func() error {
					if asJSON {
						return cli.WriteJSON(p.Stdout, reportOf(&shown, windows.Zone(r.Config, w.Period), shards))
					}
					none := ""
					if b.Listed && b.Lost == "" && len(b.Standings) == 0 {
						none = "no member has a rank above " + units.Thousands(int64(offset))
					}
					return newText(p.Stdout, windows.Zone(r.Config, w.Period)).write(&shown, none)
				})
			})
		},
	}
	c.Flags().StringVar(&window, "window", windows.Current, windows.Help)
	c.Flags().IntVar(&limit, "limit", 10, "how many `members`")
	c.Flags().IntVar(&offset, "offset", 0, "how many `members` to leave out first")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&shards, "shards", false, shardsHelp)
	return c
}
