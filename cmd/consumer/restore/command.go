// Package restore is the command restore: the boards from a snapshot and the log, where the log alone
// doesn't reach far enough.
package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/cmd/consumer/config"
	rebuilding "github.com/standings/standings/cmd/consumer/rebuild"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
)

// maxHold is how long ingestion beside live boards is held up at a time.
const maxHold = 2 * time.Second

type flags struct {
	name             string
	dryRun, yes      bool
	acceptIncomplete bool
	asJSON           bool
}

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "restore",
		Short: "Bring the boards back from a snapshot and the log",
		Long: `Loads a snapshot of those in snapshots.url, folds the log onto it from where it began, and puts that in the place
of the boards in one step. It is for a Redis that was lost, whose log no longer reaches
back to the beginning of every window: with a snapshot it has to reach back to that
alone. What comes back is exact, to the event.

Consumers may run. Where Redis has nothing, they are held up until the boards are back,
and go on from there; where they have begun by themselves, they go on meanwhile, and the
restore takes the place of what they have once they are past the snapshot. A window that
is final on the live boards is kept. With several shards each is swapped in its turn.

Before anything is changed all of the snapshot is read and its checksums are compared.
It is refused, with what is missing, where the log begins after it or ends before it,
and where it was taken with other scores or other rules of counting; the number of shards
may be another. Then it shows what it is about to do, and --dry-run ends there.

It can be stopped, or killed, at any time: the boards are then as they were, what it
leaves in Redis expires within a minute, and it can be started again. Who is banned is
hidden as soon as a consumer runs that has event bans configured; what members are called
comes back with their next events.

The exit code is 0 if the boards are back, or a dry run found nothing in the way, 1 if
they aren't, and 2 if the command line or the configuration is wrong.`,
		Example: `  consumer restore --dry-run
  consumer restore --yes --snapshot 20261125T030000Z-abcdefgh
  STANDINGS_SNAPSHOTS_URL=dir:/mnt/snapshots consumer restore`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.dryRun && f.yes {
				return cli.Usagef("--dry-run changes nothing, and --yes is for what does")
			}
			if !f.dryRun && !f.yes && !asks(p) {
				return cli.Usagef("there is nobody to ask: give --dry-run to see what it would do, or --yes to do it")
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			return run(c.Context(), p, l.Config, &f)
		},
	}
	c.Flags().StringVar(&f.name, "snapshot", "", "the snapshot's `name`; by default the newest of redis.prefix that is whole")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what it would do, and change nothing")
	c.Flags().BoolVar(&f.yes, "yes", false, "don't ask")
	c.Flags().BoolVar(&f.acceptIncomplete, "accept-incomplete", false, "bring back windows that lacked events as the snapshot was taken, too, and show them as incomplete")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	complete.Flags(c, p)
	return c
}

// asks reports whether there is somebody to ask. A test says that there is.
var asks = (*cli.Program).Interactive

// run does it, and says how it goes on stderr and what came of it on stdout.
func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	shown := rebuilding.NewShow(p.Stderr)
	from, err := clients.OpenSnapshots(ctx, cfg)
	if err != nil {
		return err
	}
	if from == nil {
		return cli.Usagef("snapshots.url isn't set: it says where snapshots are kept")
	}
	defer from.Close()
	snap, err := choose(ctx, from.Store, f.name, cfg.Redis.Prefix, shown.Note)
	if err != nil {
		return err
	}
	snap.Memory = rowsMemory(cfg)
	prepared, err := rebuilding.Prepare(ctx, cfg, rebuilding.Beside{Topics: topicsOf(snap), Memory: snap.Memory}, shown)
	if err != nil {
		return err
	}
	defer prepared.Close()
	cfg = prepared.Config
	job := prepared.Job
	job.Restore, job.MaxHold = snap, maxHold
	job.From = ingest.ReplayFrom{From: start.FromWindow}
	job.Choice = shadow.Choice{AcceptIncomplete: f.acceptIncomplete}
	check, err := job.Check(ctx)
	if err != nil {
		return explain(ctx, err, cfg, &rebuild.Result{})
	}
	all := newReport(snap, check, f, time.Now())
	if !f.asJSON || !f.dryRun {
		_ = terminal.Write(p.Stderr, planText(snap, check, time.Now()))
	}
	if len(check.Refused) > 0 {
		refused := &shadow.RefusedError{Reasons: check.Refused}
		if f.asJSON {
			return errors.Join(refused, cli.WriteJSON(p.Stdout, all))
		}
		return refused
	}
	if f.dryRun {
		if f.asJSON {
			return cli.WriteJSON(p.Stdout, all)
		}
		return terminal.Write(p.Stdout, "Nothing was changed: this was a dry run.\n")
	}
	if !f.yes {
		if err := ask(ctx, p, cfg.Redis.Prefix); err != nil {
			return err
		}
	}
	result, err := job.Run(ctx)
	all.result(result, err)
	if err != nil && !result.Swapped {
		err = explain(ctx, err, cfg, result)
	}
	if f.asJSON {
		return errors.Join(err, cli.WriteJSON(p.Stdout, all))
	}
	if !result.Swapped {
		return err
	}
	return errors.Join(err, terminal.Write(p.Stdout, resultText(snap, result)))
}

func ask(ctx context.Context, p *cli.Program, prefix string) error {
	switch err := p.Ask(ctx, fmt.Sprintf("To put it in the place of what is there, type the prefix, %s: ", prefix), prefix); {
	case errors.Is(err, cli.ErrNotTyped):
		return errors.New("that isn't the prefix: nothing was changed")
	case err != nil:
		return errors.New("interrupted: nothing was changed")
	}
	return nil
}

// rowsMemory is what the restore takes of fold_memory to know what members have already: a quarter of it,
// as long as enough is left for folding.
func rowsMemory(cfg *config.Config) int64 {
	return max(0, min(cfg.FoldMemory/4, cfg.FoldMemory-ingest.LeastMemory(cfg.MaxEventBytes)))
}

// explain says what the end of a restore means that isn't known to have changed a board.
func explain(ctx context.Context, err error, cfg *config.Config, r *rebuild.Result) error {
	if room, ok := errors.AsType[*rebuild.RoomError](err); ok {
		return fmt.Errorf("%w: set fold_memory to %dMiB at least, for this command alone", err, atLeast(cfg, room.Needs)>>20+1)
	}
	return rebuilding.Explain(ctx, err, cfg, r)
}

// atLeast is the fold_memory of which so much is for rows.
func atLeast(cfg *config.Config, rows int64) int64 {
	return max(4*rows, rows+ingest.LeastMemory(cfg.MaxEventBytes))
}
