// Package reshard implements the command reshard: it copies the standings to another number of shards and
// shows the progress.
package reshard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/ranking/reshard"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

const (
	// lease is how long consumers wait for a reshard that was killed.
	lease = 30 * time.Second
	// rate is the number of standings per second that a reshard copies and compares, as measured on a small
	// machine (docs/scaling.md). It is used for estimates.
	rate = 200_000
)

// flags holds the command line of a reshard.
type flags struct {
	to     int
	dryRun bool
	level  time.Duration
	asJSON bool
}

// Command returns the reshard command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "reshard",
		Short: "Change the number of shards",
		Long: `Copies all boards to --to new shards, reads the copy again, compares it, and switches over in one
step. Consumers pause between two batches meanwhile, and catch up afterwards. Readers use
the old shards until the switch. Consumers and commands use the new number by themselves,
whatever redis.shards is; update it when convenient.

The masters of the new shards need as much free memory as all boards use. The command can be
stopped or killed at any time: until the switch the old shards are unchanged, consumers continue
within half a minute, and the copy expires within a day. When run again it starts over, or after the
switch finishes the cleanup.

The exit code is 0 if the boards are on the new shards, 1 if not, or if Redis did not
report the outcome, and 2 for an invalid command line or configuration.`,
		Example: `  consumer reshard --to 12 --dry-run
  consumer reshard --to 12`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.to < 1 || f.to > ledger.MaxShards {
				return cli.Usagef("--to must be 1 to %d", ledger.MaxShards)
			}
			if f.level < time.Second || f.level > time.Hour {
				return cli.Usagef("--wait must be 1s to 1h")
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			return run(c.Context(), p, l.Config, &f)
		},
	}
	c.Flags().IntVar(&f.to, "to", 0, "new `number` of shards")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be copied, and about how long it takes")
	c.Flags().DurationVar(&f.level, "wait", time.Minute, "maximum `time` to wait for consumers to finish their batches")
	c.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	return c
}

// report is the result as JSON. docs/json.md describes its fields.
type report struct {
	Switched  bool             `json:"switched"`
	DryRun    bool             `json:"dry_run"`
	From      int              `json:"from"`
	To        int              `json:"to"`
	Windows   int              `json:"windows"`
	Standings int64            `json:"standings"`
	Checksum  cli.OptionalText `json:"checksum"` // null if nothing was compared
	HeldMS    int64            `json:"held_ms"`
	TookMS    int64            `json:"took_ms"`
	Removed   int              `json:"removed"`
}

// run runs the reshard. It writes the progress to stderr and the result to stdout.
func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	client, err := app.NewRedis(cfg, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	v, err := inventory.NewView(ctx, client, cfg.Redis.Prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if err != nil {
		return untouched(ctx, err, cfg)
	}
	to := ledger.Shards(f.to)
	plan := &reshard.Plan{From: v.Shards, To: to}
	if v.Shards != to {
		if err := ready(ctx, cfg, v); err != nil {
			return untouched(ctx, err, cfg)
		}
		if plan, err = reshard.Survey(ctx, v, to); err != nil {
			return untouched(ctx, err, cfg)
		}
		fmt.Fprintf(p.Stderr, "%s in %s, from %s to %d. Ingestion pauses meanwhile, for about %s.\n",
			units.Plural(plan.Standings, "standing"), units.Plural(int64(plan.Windows), "window"), units.Plural(int64(plan.From), "shard"), f.to, about(plan.Standings))
	}
	if f.dryRun {
		return write(p.Stdout, f, &reshard.Result{Plan: *plan})
	}
	shown := &show{w: p.Stderr, standings: plan.Standings}
	job := &reshard.Job{
		View: v, To: to, Owner: app.Owner(), Lease: lease, Level: f.level,
		Watch: reshard.Watch{Step: shown.step, Copied: shown.copied.Store, Note: shown.note},
	}
	result, err := job.Run(ctx)
	shown.ended()
	switch {
	case errors.Is(err, reshard.ErrSame):
		return fmt.Errorf("nothing to do: the prefix %s already has %s", cfg.Redis.Prefix, units.Plural(int64(to), "shard"))
	case err != nil && result.Unsure:
		return fmt.Errorf("the outcome of the switch is unknown; run the command again to find out: %w", err)
	case err != nil && result.Switched:
		return errors.Join(app.ExplainRedis(ctx, err, cfg), write(p.Stdout, f, result))
	case err != nil:
		return untouched(ctx, err, cfg)
	}
	return write(p.Stdout, f, result)
}

// ready checks Redis's settings and commands before anything is paused.
func ready(ctx context.Context, cfg *config.Config, v *inventory.View) error {
	if err := v.Stores()[0].TryEviction(ctx, cfg.Redis.AssumeNoeviction); err != nil {
		return err
	}
	return reshard.TryCommands(ctx, v)
}

// untouched returns the error for a failure that left the old shards unchanged.
func untouched(ctx context.Context, err error, cfg *config.Config) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: the boards are unchanged")
	}
	if redisconn.Unreachable(err) {
		return app.ExplainRedis(ctx, err, cfg)
	}
	return err
}

// about estimates how long a number of standings takes.
func about(standings int64) string {
	return units.FormatDuration(max(time.Second, time.Duration(standings)*time.Second/rate).Round(time.Second))
}

// show shows the progress to a person.
type show struct {
	w         io.Writer
	standings int64
	copied    atomic.Int64
	progress  atomic.Pointer[terminal.Progress] // nil while no bar is shown
}

func (s *show) note(line string) {
	if bar := s.progress.Load(); bar != nil {
		bar.Note(line)
		return
	}
	fmt.Fprintln(s.w, terminal.OneLine(line))
}

// step shows that a step starts.
func (s *show) step(step reshard.Step) {
	s.ended()
	s.copied.Store(0)
	switch step {
	case reshard.Leveling:
		s.note("waiting for consumers to finish their batches")
	case reshard.Copying:
		s.bar("copying")
	case reshard.Comparing:
		s.bar("comparing")
	case reshard.Switching:
	case reshard.Removing:
		s.note("removing the old shards")
	}
}

func (s *show) bar(what string) {
	s.progress.Store(terminal.ShowProgress(s.w, what, "standings", s.standings, s.copied.Load))
}

// ended removes the progress bar.
func (s *show) ended() {
	if bar := s.progress.Swap(nil); bar != nil {
		bar.Stop()
	}
}

// write writes the result.
func write(w io.Writer, f *flags, r *reshard.Result) error {
	if f.asJSON {
		all := report{
			Switched: r.Switched, DryRun: f.dryRun, From: int(r.From), To: int(r.To), Windows: r.Windows, Standings: r.Standings,
			HeldMS: r.Held.Milliseconds(), TookMS: r.Took.Milliseconds(), Removed: r.Removed,
		}
		if r.Switched {
			all.Checksum = cli.OptionalText(checksum(r))
		}
		return cli.WriteJSON(w, all)
	}
	var b strings.Builder
	switch {
	case f.dryRun:
		fmt.Fprintln(&b, "Nothing was changed.")
	case !r.Switched:
		fmt.Fprintf(&b, "It had already switched to %s; %s of the old shards were removed.\n", units.Plural(int64(r.To), "shard"), units.Plural(int64(r.Removed), "key"))
	default:
		fmt.Fprintf(&b, "The boards are on %s now: %s in %s, with the checksum %s on both sides. Ingestion paused for %s.\n",
			units.Plural(int64(r.To), "shard"), units.Plural(r.Standings, "standing"), units.Plural(int64(r.Windows), "window"), checksum(r), units.FormatDuration(r.Held.Round(time.Millisecond)))
		fmt.Fprintf(&b, "Set redis.shards to %d. Until then consumers and commands use the value in Redis and log a warning.\n", int(r.To))
	}
	return terminal.Write(w, b.String())
}

func checksum(r *reshard.Result) string { return fmt.Sprintf("%016x", r.Checksum) }
