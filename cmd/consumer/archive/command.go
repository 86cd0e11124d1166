// Package archive is the command archive: it lists and verifies copies of windows, and copies windows by
// hand.
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

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "archive",
		Short: "Copy windows to the archive, list them, and verify them",
		Args:  cli.ExactArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listCommand(p), verifyCommand(p), runCommand(p))
	return c
}

// open opens the archive of the configuration, and checks its schema. Of one that is empty there is no
// store, and no error.
func open(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	s, err := app.OpenArchive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, cli.Usagef("archive.url isn't set: it says where final windows are kept")
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
		Short: "List the copies of windows in the archive",
		Long: `Lists the whole copies of windows, the latest window first: every revision of final windows, and
the backups of open ones. Times are in time_zone.`,
		Example: `  consumer archive list
  consumer archive list --board global --period weekly --limit 0 --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef("--limit has to be 0 or more; 0 is all")
			}
			return list(c.Context(), p, f, limit, asJSON)
		},
	}
	c.Flags().StringVar(&f.Board, "board", "", "only windows of this `board`")
	c.Flags().StringVar(&f.Period, "period", "", "only windows of this `period`")
	c.Flags().IntVar(&limit, "limit", 100, "list at most this many `copies`; 0 is all")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

func verifyCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [BOARD PERIOD WINDOW]",
		Short: "Compare copies with what was written, and with Redis",
		Long: `Reads every row of a window's copies in the archive, or of all windows', and compares their
number and checksum with what was written. If Redis has the final window of the same
revision, too, it is compared row by row, with the rows of banned members. Whether a member
is banned is not a difference, and an erased member is in neither.

The exit code is 1 where something differs, or can't be read.`,
		Example: `  consumer archive verify
  consumer archive verify global weekly 2026-W47 --json`,
		ValidArgsFunction: complete.BoardAndPeriod(p),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return cli.Usagef("consumer archive verify takes a board, a period and a window, or nothing, not %d arguments", len(args))
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

// pageOfCopies is how many copies are listed at a time.
const pageOfCopies = 500

// each calls do for the copies that a filter chooses, up to a limit; 0 is all.
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
