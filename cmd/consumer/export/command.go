// Package export is the command export: windows row by row, from Redis or the archive, as CSV or
// NDJSON.
package export

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
)

// options are what is exported, and how.
type options struct {
	board, period, window string // empty: all
	all                   bool
	format                string
	raw                   bool
	output                string
}

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "export BOARD [PERIOD [WINDOW]]",
		Short: "Write windows as CSV or NDJSON, live and past ones",
		Long: `Writes the standings of a window row by row, most points first; without WINDOW those of all
windows of the period, without PERIOD those of all of the board, with --all of every board.
What Redis has is read from there, what it doesn't have any more from the archive. WINDOW is
current, previous, or a name.

The lines are those of the API's export. Of several windows each row begins with its board,
period and window; in CSV, what a board counts instead of points is one column, fields.
NDJSON has a line {"end":true,…} after each window, and after several {"done":true,…}:
an export without its last line was cut off. A window that Redis has lost is an error.

In CSV, a member id or name that a spreadsheet would take for a formula, since it begins
with =, +, -, @, a tab or a line break, has an apostrophe before it, and so has one that
begins with an apostrophe. --raw writes ids and names as they are.

With --output the file is there only once it is complete.`,
		Example: `  consumer export global weekly 2026-W47 --format csv > w47.csv
  consumer export --all --output boards.ndjson`,
		ValidArgsFunction: complete.BoardAndPeriod(p),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.all && len(args) > 0:
				return cli.Usagef("--all is every board: without arguments")
			case !o.all && (len(args) < 1 || len(args) > 3):
				return cli.Usagef("consumer export takes a board, or one and a period, or these and a window, not %d arguments; or --all", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for i, to := range []*string{&o.board, &o.period, &o.window} {
				if i < len(args) {
					*to = args[i]
				}
			}
			if o.format != "ndjson" && o.format != "csv" {
				return cli.Usagef("--format has to be ndjson or csv")
			}
			if o.raw && o.format != "csv" {
				return cli.Usagef("--raw is for --format csv: of ndjson every text is exact")
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if o.period != "" {
				if _, err := windows.Check(l.Config, o.board, o.period); err != nil {
					return err
				}
			}
			return export(c.Context(), p, l.Config, &o)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "export every board")
	c.Flags().StringVar(&o.format, "format", "ndjson", "ndjson or csv")
	c.Flags().BoolVar(&o.raw, "raw", false, "with --format csv, write ids and names as they are, also those that a spreadsheet takes for formulas")
	c.Flags().StringVar(&o.output, "output", "", "write this `file`, which mustn't be there yet; else stdout")
	return c
}
