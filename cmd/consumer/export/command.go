// Package export implements the command export: it writes windows row by row, from Redis or the archive, as
// CSV or NDJSON.
package export

import (
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
)

// options holds the selection and the format of an export.
type options struct {
	board, period, window string // empty: all
	all                   bool
	format                string
	raw                   bool
	output                string
}

// Command returns the export command for a program.
func Command(p *cli.Program) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "export BOARD [PERIOD [WINDOW]]",
		Short: "Export windows as CSV or NDJSON",
		Long: `Writes the standings of a window in rank order; without WINDOW, of all windows of the
period; without PERIOD, of the board; with --all, of all boards. Windows that Redis no
longer has are read from the archive. WINDOW is current, previous, or a name.

The lines are those of the API's export. With several windows each row begins with board, period
and window, and CSV has the values of boards with fields in one column, fields. NDJSON has
a line {"end":true,…} after each window and, with several, {"done":true,…} at the end:
without its last line an export was cut off. A window that Redis has lost is an error.

CSV has an apostrophe before member ids and names that a spreadsheet could read as formulas
(starting with =, +, -, @, a tab or a line break) or that start with an apostrophe. --raw
writes them unchanged.

With --output the file appears only once it is complete.`,
		Example: `  consumer export global weekly 2026-W47 --format csv > w47.csv
  consumer export --all --output boards.ndjson`,
		ValidArgsFunction: complete.BoardAndPeriod(p),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.all && len(args) > 0:
				return cli.Usagef("--all excludes arguments")
			case !o.all && (len(args) < 1 || len(args) > 3):
				return cli.Usagef("consumer export requires BOARD [PERIOD [WINDOW]] or --all, not %d arguments", len(args))
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
				return cli.Usagef("--format must be ndjson or csv")
			}
			if o.raw && o.format != "csv" {
				return cli.Usagef("--raw requires --format csv; NDJSON is always exact")
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
	c.Flags().BoolVar(&o.raw, "raw", false, "with --format csv: write ids and names unchanged, even if a spreadsheet reads them as formulas")
	c.Flags().StringVar(&o.output, "output", "", "write to this `file`, which must not exist (default: standard output)")
	return c
}
