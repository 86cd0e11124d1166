// Package archive implements the command archive: it lists and verifies copies of windows, and copies
// windows on demand.
package archive

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
)

// Command returns the archive command for a program.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "archive",
		Short: "Copy windows to the archive, list and verify copies",
		Args:  cli.ExactArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(p), verifyCommand(p), runCommand(p))
	return c
}

// open opens the configured archive and checks its schema. If the archive is empty, open returns a nil
// store and no error.
func open(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	s, err := app.OpenArchive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, cli.Usagef("archive.url is not set")
	}
	err = s.Check(ctx)
	if err == nil {
		return s, nil
	}
	_ = s.Close() // nothing was written
	if errors.Is(err, store.ErrEmpty) {
		return nil, nil
	}
	return nil, err
}

func listCommand(p *cli.Program) *cobra.Command {
	var f store.Filter
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List archived windows",
		Long: `Lists complete copies, the latest window first: every revision of final windows, and backups of open
ones. Times are in time_zone.`,
		Example: `  consumer archive list
  consumer archive list --board global --period weekly --limit 0 --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef("--limit must be at least 0 (0: all)")
			}
			return list(c.Context(), p, f, limit, asJSON)
		},
	}
	c.Flags().StringVar(&f.Board, "board", "", "only windows of this `board`")
	c.Flags().StringVar(&f.Period, "period", "", "only windows of this `period`")
	c.Flags().IntVar(&limit, "limit", 100, "maximum number of `copies` (0: all)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

func verifyCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [BOARD PERIOD WINDOW]",
		Short: "Verify archived windows",
		Long: `Reads all rows of a window's copies, or of all copies, and compares their number and checksum with
what was written. If Redis has the same revision of a final window, it compares
row by row, including banned members. A ban is not a difference, and erased members are in
neither.

The exit code is 1 if something differs or cannot be read.`,
		Example: `  consumer archive verify
  consumer archive verify global weekly 2026-W47 --json`,
		ValidArgsFunction: complete.BoardAndPeriod(p),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return cli.Usagef("consumer archive verify takes BOARD PERIOD WINDOW or nothing, not %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var f store.Filter
			if len(args) == 3 {
				f = store.Filter{Board: args[0], Period: args[1], Name: args[2]}
			}
			return verify(c.Context(), p, f, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// pageOfCopies is the number of copies that each reads at a time.
const pageOfCopies = 500

// each calls do for the copies that match a filter, up to limit; a limit of 0 means all.
func each(ctx context.Context, s *store.Store, f store.Filter, limit int, do func(*store.Window) error) error {
	if s == nil {
		return nil
	}
	for at, n := (store.Place{}), 0; ; {
		some, err := s.Windows(ctx, f, at, pageOfCopies)
		if err != nil {
			return err
		}
		for i := range some {
			if err := do(&some[i]); err != nil {
				return err
			}
			if n++; n == limit {
				return nil
			}
			at = some[i].Place()
		}
		if len(some) < pageOfCopies {
			return nil
		}
	}
}
