// Package rebuild is the command rebuild: it has the boards rebuilt, and shows how that
// goes.
package rebuild

// consumer rebuild: the boards from the log, in place, while consumers run.

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
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

const (
	// shortestHold is the least that a swap and what leads to it may need.
	shortestHold = 100 * time.Millisecond
	longestHold  = time.Minute
	// mostListed is the most standings that are listed.
	mostListed = 1_000_000
)

// flags are the command line of a rebuild.
type flags struct {
	from             string
	boards           []string
	dryRun, diff     bool
	limit            int
	acceptIncomplete bool
	maxHold          time.Duration
	asJSON           bool
}

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild the boards from the log while consumers run",
		Long: `Reads the log again, by the rules that are configured, into a shadow of the boards,
and swaps the two in one step once they hold the very same events. Consumers go on
meanwhile and are held up only for the last of it; readers never see a board that is
half one and half the other. It fixes a shard that is torn, a board that is lost, and
a score that something else wrote. Of several shards each is swapped in its turn; if it
ends between two of them it says which are rebuilt, and each is exact by itself.

Reading begins at --from:

  (nothing)     the first offset that can hold an event of a window that lives, but no
                earlier than the boards themselves began
  window        the same, however the boards began
  earliest      the log's start
  a time        the first record of that time or later, as 2026-11-01T00:00:00Z
  a file        the offsets that it gives, in lines of topic,partition,offset, as
                kafka-consumer-groups --reset-offsets --from-file takes them

A window is replaced if it starts no earlier than what was read in every partition;
the others are kept, and named. Only one rebuild can be under way; it can be stopped, or
killed, at any time: the boards are then as they were, and what it leaves in Redis
expires, the shadow within a minute and boards that were replaced within ten. It commits
nothing and writes no dead letters.

--dry-run does everything but the swap, the short hold too, and shows how many standings
would change; --diff lists them, with or without it, and with event.fields.name set says
what members are called.

The exit code is 0 if the boards were rebuilt, or none had to be, 1 if they weren't, or
Redis never said whether they were, and 2 if the command line or the configuration is
wrong.`,
		Example: `  consumer rebuild --dry-run
  consumer rebuild --dry-run --diff --limit 20
  consumer rebuild --from 2026-11-01T00:00:00Z --board eu`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.maxHold < shortestHold || f.maxHold > longestHold {
				return cli.Usagef("--max-hold has to be %s to %s", units.FormatDuration(shortestHold), units.FormatDuration(longestHold))
			}
			if f.limit < 1 || f.limit > mostListed {
				return cli.Usagef("--limit has to be 1 to %d", mostListed)
			}
			for _, board := range f.boards {
				if err := config.CheckBoard(board); err != nil {
					return cli.Usagef("--board %q %w", board, err)
				}
			}
			from, err := parseFrom(f.from)
			if err != nil {
				return cli.Usagef("%w", err)
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			for _, board := range f.boards {
				if len(l.Config.Boards) > 0 && !slices.Contains(l.Config.Boards, board) {
					return cli.Usagef("--board %s isn't among the configured boards: %s", board, strings.Join(l.Config.Boards, ", "))
				}
			}
			return run(c.Context(), p, l.Config, &f, from)
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "`where` to begin: window, earliest, a time or a file of offsets")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "rebuild this `board` alone; can be repeated")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "do everything but the swap")
	c.Flags().BoolVar(&f.diff, "diff", false, "list the standings that differ")
	c.Flags().IntVar(&f.limit, "limit", 100, "list so many `standings`")
	c.Flags().BoolVar(&f.acceptIncomplete, "accept-incomplete", false, "go on where windows that the log no longer has lack events, and show them as incomplete")
	c.Flags().DurationVar(&f.maxHold, "max-hold", 2*time.Second, "hold ingestion up for no longer than this at a `time`")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

// run does it, and says how it goes on stderr and what came of it on stdout.
func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags, from ingest.ReplayFrom) error {
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
	if refused, ok := errors.AsType[*shadow.RefusedError](err); ok && f.asJSON {
		// Which windows it is refused for, the text says of some alone.
		return errors.Join(err, unwrittenResult(cli.WriteJSON(p.Stdout, reportOf(result, f, refused.Reasons)), result))
	}
	if err != nil && !result.Swapped {
		err = explain(ctx, err, cfg, result)
		if f.asJSON && result.Partly() != "" {
			err = errors.Join(err, unwrittenResult(cli.WriteJSON(p.Stdout, reportOf(result, f, nil)), result))
		}
		return err
	}
	if f.asJSON {
		return errors.Join(err, unwrittenResult(cli.WriteJSON(p.Stdout, reportOf(result, f, nil)), result))
	}
	return errors.Join(err, unwrittenResult(writeResult(p.Stdout, result, f, zone), result))
}

// unwrittenResult says what was done where that couldn't be written.
func unwrittenResult(err error, r *rebuild.Result) error {
	switch {
	case err == nil:
		return nil
	case r.Swapped:
		return fmt.Errorf("the boards were rebuilt, but not what came of it written: %w", err)
	case r.Partly() != "":
		return fmt.Errorf("what came of it wasn't written: %w", err)
	}
	return fmt.Errorf("the boards are as they were, and what came of it wasn't written: %w", err)
}

// ended is why a rebuild ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// explain says what the end of a rebuild means that isn't known to have changed a board.
func explain(ctx context.Context, err error, cfg *config.Config, r *rebuild.Result) error {
	halt, halted := errors.AsType[*health.Halt](err)
	_, answered := errors.AsType[kafka.Error](err)
	partly := r.Partly()
	switch {
	case partly != "":
		return fmt.Errorf("%s. Each shard is exact by itself; start it again for all of them: %w", partly, ended(ctx, err))
	case r.Unsure:
		return fmt.Errorf("it isn't known whether the boards were swapped: all of them or none, unless partitions halt as torn, which another rebuild fixes; "+
			"consumer rebuild --dry-run says what still differs: %w", err)
	case ctx.Err() != nil:
		return errors.New("interrupted: the boards are as they were")
	case errors.Is(err, shadow.ErrLost), errors.Is(err, ingest.ErrShadowLost):
		return fmt.Errorf("the boards are as they were, and what was rebuilt is gone: %w", err)
	case errors.Is(err, rebuild.ErrNothing), halted:
		if halted {
			return halt
		}
		return err
	case answered:
		return app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	case redisconn.Unreachable(err):
		return app.ExplainRedis(ctx, err, cfg)
	}
	return err
}
