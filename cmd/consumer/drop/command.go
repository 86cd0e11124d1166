// Package drop implements the command drop: it removes some boards, or all keys under a prefix.
package drop

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// bytesMember is the approximate memory per member and window, in bytes.
const bytesMember = 120

type flags struct {
	prefix     string
	boards     []string
	yes, force bool
}

// Command returns the drop command for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "drop --prefix OLD | --board NAME",
		Short: "Remove boards, or all keys of an unused prefix",
		Long: `With --board: drops all windows of a board while consumers and readers run. It shows
what it will remove, and you confirm by typing the name. NAME* is all boards with this
prefix. Dropped windows accept no more events, since they would be partial; the board's next
windows start as usual, unless "boards" excludes it. "consumer rebuild" restores what
the log has. --prefix selects another prefix than the configured one.

Without --board: removes the boards and all other keys under a prefix. It shows what it
will remove, and you confirm by typing the prefix. Redis frees the memory in the
background.

It refuses a prefix that a consumer uses (one that reported within 30 seconds, or that reports or
counts during a check of 3 seconds) or that is being rebuilt, and, without --force,
the configured prefix. Other prefixes with the same beginning are unaffected.

If it is stopped halfway, the remaining keys are not valid boards: a consumer that starts
under the prefix halts. The same command continues.

The exit code is 0 if nothing is left, 1 if something is left or the prefix is in use, and
2 for an invalid command line or configuration.`,
		Example: `  consumer drop --prefix lb-old
  consumer drop --board eu --board 'spam*'`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if len(f.boards) > 0 && f.prefix == "" {
				f.prefix = l.Config.Redis.Prefix
			}
			switch err := config.CheckPrefix(f.prefix); {
			case f.prefix == "":
				return cli.Usagef("--prefix or --board is required")
			case err != nil:
				return cli.Usagef("--prefix %q %w", f.prefix, err)
			case f.prefix == l.Config.Redis.Prefix && len(f.boards) == 0 && !f.force:
				return cli.Usagef("%s is the configured prefix (redis.prefix): use --force to remove it", f.prefix)
			}
			if err := checkBoards(f.boards); err != nil {
				return err
			}
			return run(c.Context(), p, l.Config, &f)
		},
	}
	c.Flags().StringVar(&f.prefix, "prefix", "", "`prefix` of the keys to remove")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "drop only the board of this `name`, or with name* all with this prefix; can be repeated")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&f.force, "force", false, "remove the configured prefix")
	complete.Flags(c, p)
	return c
}

func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	if !f.yes && !p.Interactive {
		return cli.Usagef("no terminal for the confirmation: use --yes")
	}
	client, err := app.NewRedis(cfg, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	d := &drop{program: p, cfg: cfg, boards: f.boards, prefix: f.prefix}
	d.view, err = inventory.NewView(ctx, client, f.prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if d.view == nil || err != nil && d.boards != nil { // for a whole prefix, it does not matter if the schema is missing or of another version
		return untouched(ctx, err, cfg)
	}
	found, err := d.survey(ctx)
	switch {
	case err != nil:
		return untouched(ctx, err, cfg)
	case found.Keys == 0 && d.boards != nil:
		return fmt.Errorf("no window of %s is listed under the prefix %s: nothing was removed", d.named(), f.prefix)
	case found.Keys == 0:
		fmt.Fprintf(p.Stdout, "Nothing is stored under the prefix %s.\n", f.prefix)
		return nil
	}
	if err := terminal.Write(p.Stdout, what(f.prefix, found)); err != nil {
		return fmt.Errorf("write what would be removed: %w; nothing was removed", err)
	}
	if err := d.unused(ctx, found); err != nil {
		return err
	}
	if !f.yes {
		if err := d.ask(ctx); err != nil {
			return err
		}
		// A consumer may have started meanwhile.
		if found, err = d.survey(ctx); err != nil {
			return untouched(ctx, err, cfg)
		}
		if err := d.unused(ctx, found); err != nil {
			return err
		}
	}
	return d.remove(ctx, found)
}

// untouched returns the error for a failure before anything was removed.
func untouched(ctx context.Context, err error, cfg *config.Config) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return app.ExplainRedis(ctx, err, cfg)
}

var errInterrupted = errors.New("interrupted: nothing was removed")

func (d *drop) ask(ctx context.Context) error {
	what, answer := "the prefix", d.prefix
	if d.boards != nil {
		what, answer = d.named(), d.named()
	}
	switch err := d.program.Ask(ctx, fmt.Sprintf("To remove all of it, type %s: ", what), answer); {
	case errors.Is(err, cli.ErrNotTyped):
		return fmt.Errorf("the input is not %s: nothing was removed", what)
	case err != nil:
		return errInterrupted
	}
	return nil
}

func what(prefix string, f *inventory.Found) string {
	boards := "no boards"
	if len(f.Boards) > 0 {
		boards = plain(f.Boards)
	}
	return fmt.Sprintf("Under the prefix %s: %s (%s), %s in them, about %s; %s in all.\n",
		prefix, units.Plural(int64(f.Windows), "window"), boards, units.Plural(f.Members, "standing"),
		units.ShortBytes(f.Members*bytesMember), units.Plural(int64(f.Keys), "key"))
}

// plain lists names, escaped, because another program may have written them.
func plain(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = terminal.Plain(name)
	}
	return units.Names(all)
}
