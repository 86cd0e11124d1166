// Package rebuild implements the command rebuild: it rebuilds the boards and shows the progress.
package rebuild

// The command rebuilds the boards from the log, in place, while consumers run.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

const (
	// shortestHold is the minimum time that a swap and the steps before it may need.
	shortestHold = 100 * time.Millisecond
	longestHold  = time.Minute
	// mostListed is the maximum of --limit.
	mostListed = 1_000_000
)

// flags holds the command line of a rebuild.
type flags struct {
	from             string
	boards           []string
	dryRun, diff     bool
	limit            int
	acceptIncomplete bool
	maxHold          time.Duration
	asJSON           bool
}

// Command returns the rebuild command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild the boards from the log",
		Long: `Reads the log again, with the configured rules, into a shadow of the boards, and swaps the two
in one step. Readers never see a mixture. If every window that takes events is replaced, consumers
never pause: they read the last events again, and the boards are refilling until then. If such a
window is kept, consumers pause for the last part. A rebuild fixes a torn shard, a lost board, and scores that
another program wrote. Shards are swapped one by one; if the rebuild ends in between, it
reports which are rebuilt, and each is exact by itself.

--from sets where to start reading:

  (nothing)     the first offset that can hold an event of a live window, but not before
                the boards began
  window        the same, even before the boards began
  earliest      the start of the log
  a time        the first record of that time or later, such as 2026-11-01T00:00:00Z

A window is replaced if it starts after the first time that was read in every partition;
others are kept and listed. Only one rebuild can run. It can be stopped or killed at any time:
the boards are then unchanged, and its keys expire, the shadow within a minute and replaced
boards within ten. It commits no offsets and writes no dead letters.

--dry-run does everything except the swap, including the short pause, and shows how many
standings would change. --diff lists them, with members' names if event.fields.name is
set.

The exit code is 0 if the boards were rebuilt or nothing had to be, 1 if not, or if Redis did not
report the outcome, and 2 for an invalid command line or configuration.`,
		Example: `  consumer rebuild --dry-run
  consumer rebuild --dry-run --diff --limit 20
  consumer rebuild --from 2026-11-01T00:00:00Z --board eu`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.maxHold < shortestHold || f.maxHold > longestHold {
				return cli.Usagef("--max-hold must be %s to %s", units.FormatDuration(shortestHold), units.FormatDuration(longestHold))
			}
			if f.limit < 1 || f.limit > mostListed {
				return cli.Usagef("--limit must be 1 to %d", mostListed)
			}
			for _, board := range f.boards {
				if err := config.CheckBoard(board); err != nil {
					return cli.Usagef("--board %q %w", board, err)
				}
			}
			from, err := parseFrom(f.from)
			if err != nil {
				return err
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			for _, board := range f.boards {
				if len(l.Config.Boards) > 0 && !slices.Contains(l.Config.Boards, board) {
					return cli.Usagef("--board %s is not configured: use %s", board, strings.Join(l.Config.Boards, ", "))
				}
			}
			return run(c.Context(), p, l.Config, &f, from)
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "`where` to start reading: window, earliest or a time")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "rebuild only this `board`; can be repeated")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "do everything except the swap")
	c.Flags().BoolVar(&f.diff, "diff", false, "list the standings that differ")
	c.Flags().IntVar(&f.limit, "limit", 100, "maximum number of `standings` to list")
	c.Flags().BoolVar(&f.acceptIncomplete, "accept-incomplete", false, "continue if the log lacks events of a window, and show the window as incomplete")
	c.Flags().DurationVar(&f.maxHold, "max-hold", 2*time.Second, "maximum `time` to pause ingestion at once")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

// parseFrom parses --from.
func parseFrom(text string) (replay.From, error) {
	switch text {
	case "":
		return replay.From{From: start.FromWindow, SinceOrigin: true}, nil
	case "window":
		return replay.From{From: start.FromWindow}, nil
	case "earliest":
		return replay.From{From: start.FromEarliest}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return replay.From{}, cli.Usagef("--from %q must be window, earliest, or a time such as 2026-11-01T00:00:00Z", text)
	}
	return replay.From{From: start.FromTime, Time: at}, nil
}

// run runs the rebuild. It writes the progress to stderr and the result to stdout.
func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags, from replay.From) error {
	zone, err := zoneinfo.Load(cfg.TimeZone)
	if err != nil {
		return fmt.Errorf("time_zone: %w", err)
	}
	shown := &show{w: p.Stderr}
	job, cfg, end, err := prepare(ctx, cfg, shown)
	if err != nil {
		return err
	}
	defer end()
	job.From, job.MaxHold, job.DryRun, job.Compare = from, f.maxHold, f.dryRun, f.dryRun || f.diff
	job.Choice = shadow.Choice{Boards: f.boards, AcceptIncomplete: f.acceptIncomplete}
	if f.diff {
		job.List, job.Name = f.limit, cfg.Fields.Name != ""
	}
	result, err := job.Run(ctx)
	var reasons []string // the JSON lists all windows that caused a refusal; the text names only some
	if refused, ok := errors.AsType[*shadow.RefusedError](err); ok {
		reasons = refused.Reasons
	}
	if err != nil && !result.Swapped {
		err = explain(ctx, err, cfg, result)
	}
	done := err == nil || result.Swapped
	switch {
	case f.asJSON && (done || reasons != nil || result.Partly() != ""):
		return errors.Join(err, unwrittenResult(cli.WriteJSON(p.Stdout, reportOf(result, f, reasons)), result))
	case done && !f.asJSON:
		return errors.Join(err, unwrittenResult(writeResult(p.Stdout, result, f, zone), result))
	}
	return err
}

// unwrittenResult returns an error that reports what was done, if the report could not be written.
func unwrittenResult(err error, r *rebuild.Result) error {
	switch {
	case err == nil:
		return nil
	case r.Swapped:
		return fmt.Errorf("the boards were rebuilt, but the report could not be written: %w", err)
	case r.Partly() != "":
		return fmt.Errorf("could not write the report: %w", err)
	}
	return fmt.Errorf("the boards are unchanged, and the report could not be written: %w", err)
}

// explain explains an error after which no board is known to have changed, except on the shards that the
// result names.
func explain(ctx context.Context, err error, cfg *config.Config, r *rebuild.Result) error {
	halt, halted := errors.AsType[*health.Halt](err)
	_, answered := errors.AsType[kafka.Error](err)
	partly := r.Partly()
	switch {
	case partly != "":
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		return fmt.Errorf("%s. Each shard is exact by itself; run the rebuild again for the others: %w", partly, err)
	case r.Unsure:
		return fmt.Errorf("it is unknown whether the boards were swapped: all or none, unless partitions halt as torn, which another rebuild fixes; "+
			"consumer rebuild --dry-run shows what still differs: %w", err)
	case ctx.Err() != nil:
		return errors.New("interrupted: the boards are unchanged")
	case errors.Is(err, shadow.ErrLost), errors.Is(err, replay.ErrShadowLost):
		return fmt.Errorf("the boards are unchanged, and the rebuilt ones are lost: %w", err)
	case halted:
		return halt
	case errors.Is(err, rebuild.ErrNothing):
		return err
	case answered:
		return app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	case redisconn.Unreachable(err):
		return app.ExplainRedis(ctx, err, cfg)
	}
	return err
}
