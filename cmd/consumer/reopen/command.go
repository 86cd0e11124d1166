// Package reopen implements the command reopen, which removes the seal of a final window.
package reopen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/windows"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/units"
)

// mostReason is the maximum length of a reason, in bytes.
const mostReason = 500

type flags struct {
	reason string
	open   time.Duration
	asJSON bool
}

// Command returns the reopen command for a program.
func Command(p *cli.Program) *cobra.Command {
	f := flags{open: time.Hour}
	c := &cobra.Command{
		Use:   "reopen BOARD PERIOD WINDOW --reason WHY",
		Short: "Reopen a final window",
		Long: `Reopens a final window: new events count again if their record times are within its lateness.
Events that came while it was final were late and are only in the log; "consumer rebuild"
counts them.

If "seal" is set, the window becomes final again, as its next revision, after --for (1h).

The exit code is 0 if the window is open, 1 if it was not final, its retention is over, or Redis
could not be reached, and 2 for an invalid command line or configuration.`,
		Example: `  consumer reopen global weekly 2026-W47 --reason 'a server sent its events two days late'
  consumer rebuild --board global
  consumer reopen global weekly previous --for 7d --reason 'case 1234'`,
		Args:              cli.ExactArgs(3),
		ValidArgsFunction: complete.BoardAndPeriod(p),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			period, err := windows.Check(l.Config, args[0], args[1])
			if err != nil {
				return err
			}
			return f.run(c.Context(), p, l.Config, args[0], &period, args[2])
		},
	}
	c.Flags().StringVar(&f.reason, "reason", "", "`reason` to record")
	c.Flags().Var(cli.Duration(&f.open), "for", "keep it open at least this long")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

func (f *flags) check() error {
	f.reason = strings.TrimSpace(f.reason)
	switch {
	case f.reason == "":
		return cli.Usagef("--reason is required")
	case len(f.reason) > mostReason:
		return cli.Usagef("--reason has %d bytes, at most %d are possible", len(f.reason), mostReason)
	case strings.ContainsFunc(f.reason, func(r rune) bool { return r < ' ' }):
		return cli.Usagef("--reason must not contain control characters")
	case f.open < 0:
		return cli.Usagef("--for must be at least 0s")
	}
	return nil
}

// report is the JSON output.
type report struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Revision int64  `json:"revision"` // the revision that was reopened
	Until    string `json:"until"`    // the window is not sealed again before this time
}

func (f *flags) run(ctx context.Context, p *cli.Program, cfg *config.Config, board string, period *periods.Rule, name string) error {
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := windows.Find(ctx, r, period, name)
	if err != nil {
		return err
	}
	now, err := r.Boards.Now(ctx)
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	until := now.Add(f.open)
	window := ledger.Window{Board: board, Period: string(w.Period), Name: w.Name, Start: w.Start, End: w.End}
	revision, err := r.Boards.Unseal(ctx, window, until, f.reason)
	if errors.Is(err, ranking.ErrNotFinal) {
		return fmt.Errorf("%s %s %s is not final: nothing was changed", board, w.Period, w.Name)
	}
	if errors.Is(err, ranking.ErrOver) {
		return fmt.Errorf("the retention of %s %s %s is over, so it cannot change: nothing was changed", board, w.Period, w.Name)
	}
	if err != nil {
		return app.ExplainRedis(ctx, err, r.Config)
	}
	if f.asJSON {
		return cli.WriteJSON(p.Stdout, report{board, string(w.Period), w.Name, revision, units.TimeMS(until.UnixMilli())})
	}
	again := ""
	if cfg.Seal {
		again = fmt.Sprintf(" It is sealed again, as revision %d, after %s.", revision+1, until.UTC().Format(time.RFC3339))
	}
	_, err = fmt.Fprintf(p.Stdout, "%s %s %s, revision %d, is open again.%s\n", board, w.Period, w.Name, revision, again)
	return err
}
