// Package top implements the commands top and rank: they show the first standings of a board, and the rank
// of a member.
package top

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/units"
)

const shardsHelp = "with --json: add the ledger of each shard"

// pageFlags holds the flags that select which part of a board is shown.
type pageFlags struct {
	window        string
	limit, offset int
	asJSON        bool
	shards        bool
	watching      cli.Watching
}

// Command returns the top command for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &pageFlags{}
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
		Args:              cli.ExactArgs(2),
		ValidArgsFunction: complete.BoardAndPeriod(p),
		RunE: func(c *cobra.Command, args []string) error {
			if f.limit < 1 || f.offset < 0 || f.offset > math.MaxInt32 || f.limit > 1_000_000 {
				return cli.Usagef("--limit must be 1 to 1000000, and --offset at least 0")
			}
			if f.shards && !f.asJSON {
				return cli.Usagef("--shards requires --json")
			}
			if err := f.watching.Check(c.Flags()); err != nil {
				return err
			}
			if f.watching.On {
				return watch(c.Context(), p, f, args[0], args[1])
			}
			return show(c.Context(), p, args[0], args[1], f.window, func(r *Reader, t reading.Target) error {
				shown, err := r.top(c.Context(), t, f.offset, f.limit)
				if err != nil {
					return err
				}
				return r.show(c.Context(), &shown, func() error {
					if f.asJSON {
						return cli.WriteJSON(p.Stdout, reportOf(&shown, t.Period.Zone, f.shards))
					}
					return newText(p.Stdout, t.Period.Zone).write(&shown, f.none(&shown))
				})
			})
		},
	}
	c.Flags().StringVar(&f.window, "window", windows.Current, windows.Help)
	c.Flags().IntVar(&f.limit, "limit", 10, "number of `members` to show")
	c.Flags().IntVar(&f.offset, "offset", 0, "number of `members` to skip")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&f.shards, "shards", false, shardsHelp)
	f.watching.Flags(c.Flags(), time.Second)
	complete.Flags(c, p)
	return c
}

// none returns the text for a board that has members, but none on this page.
func (f *pageFlags) none(b *board) string {
	if b.Listed && b.Lost == "" && len(b.Standings) == 0 {
		return "no member has a rank above " + units.Thousands(int64(f.offset))
	}
	return ""
}
