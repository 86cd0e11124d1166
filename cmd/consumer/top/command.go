// Package top is the commands top and rank: the first standings of a board, and where one
// member stands on it.
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

const shardsHelp = "with --json: add what counts in each shard, by its ledger"

// pageFlags are what is shown of a board, and how.
type pageFlags struct {
	window        string
	limit, offset int
	asJSON        bool
	shards        bool
	watching      cli.Watching
}

// Command is the command top, for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &pageFlags{}
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

With --watch it goes on until it is interrupted (Ctrl-C, exit code 0). On a terminal the
board is drawn in place: ▲ is a member who has climbed in the last seconds, ▼ one who has
fallen. Elsewhere it is written again each time it has changed: as text after an empty
line, or with --json as one document a line. Once the current window ends, the next one
is shown. While Redis is away the last rows stay, and a line says so, on stderr where
there is no terminal.

Control characters and the like in a member's id are shown escaped; with --json
the id is as it is.`,
		Example: `  consumer top global weekly
  consumer top global weekly --watch
  consumer top eu monthly --window previous --limit 100 --json`,
		Args:              cli.ExactArgs(2),
		ValidArgsFunction: complete.BoardAndPeriod(p),
		RunE: func(c *cobra.Command, args []string) error {
			if f.limit < 1 || f.offset < 0 || f.offset > math.MaxInt32 || f.limit > 1_000_000 {
				return cli.Usagef("--limit has to be 1 to 1000000, and --offset 0 or more")
			}
			if f.shards && !f.asJSON {
				return cli.Usagef("--shards is for --json")
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
	c.Flags().IntVar(&f.limit, "limit", 10, "how many `members`")
	c.Flags().IntVar(&f.offset, "offset", 0, "how many `members` to leave out first")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&f.shards, "shards", false, shardsHelp)
	f.watching.Flags(c.Flags(), time.Second)
	complete.Flags(c, p)
	return c
}

// none is what is said where a board has members, and none of those that were requested.
func (f *pageFlags) none(b *board) string {
	if b.Listed && b.Lost == "" && len(b.Standings) == 0 {
		return "no member has a rank above " + units.Thousands(int64(f.offset))
	}
	return ""
}
