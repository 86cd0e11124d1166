// Package drop is the command drop: some boards, or everything under a prefix, removed.
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
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// bytesMember is about what a member takes in a window.
const bytesMember = 120

type flags struct {
	prefix     string
	boards     []string
	yes, force bool
}

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "drop --prefix OLD | --board NAME",
		Short: "Remove some boards, or everything under a prefix that nobody uses any more",
		Long: `With --board: drops every window that the board has, while consumers count and
readers read. It shows what that is, and asks for the name to be typed. NAME* is every
board whose name begins so. Windows that are dropped are shown no more, and take no event
any more, of which only the rest would be in; the board's next windows begin as usual,
unless "boards" leaves it out. "consumer rebuild" brings back what the log has. The
prefix is the configured one, if --prefix doesn't name another.

Without --board: removes the boards under a prefix, of any number of shards, and all
other keys under it. It shows what that is, and asks for the prefix to be typed. Redis
frees it in the background.

It refuses a prefix that a consumer uses: one that has reported within 30 seconds, or
reports or counts in the 3 seconds for which the prefix is watched; and one that is
being rebuilt. The prefix that is configured is refused, too, unless --force is given.
Other prefixes that begin alike aren't touched.

If it is stopped midway, what is left is no board to anybody: a consumer that starts
under the prefix halts, and the same command goes on where it ended.

The exit code is 0 if nothing is left, 1 if something is, or the prefix is in use, and
2 if the command line or the configuration is wrong.`,
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
				return cli.Usagef("--prefix has to name what is to be removed")
			case err != nil:
				return cli.Usagef("--prefix %q %w", f.prefix, err)
			case f.prefix == l.Config.Redis.Prefix && len(f.boards) == 0 && !f.force:
				return cli.Usagef("%s is the prefix of this configuration (redis.prefix): if that is what you mean to remove, say --force", f.prefix)
			}
			if err := checkBoards(f.boards); err != nil {
				return err
			}
			return run(c.Context(), p, l.Config, &f)
		},
	}
	c.Flags().StringVar(&f.prefix, "prefix", "", "the `prefix` under which everything is removed")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "drop the board of this `name` alone, or with name* all that begin so; once for each")
	c.Flags().BoolVar(&f.yes, "yes", false, "don't ask")
	c.Flags().BoolVar(&f.force, "force", false, "remove it even if it is the configured prefix")
	complete.Flags(c, p)
	return c
}

func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	if !f.yes && !p.Interactive {
		return cli.Usagef("there is no terminal to ask on: say --yes")
	}
	client, err := app.NewRedis(cfg, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	d := &drop{program: p, cfg: cfg, boards: f.boards, prefix: f.prefix}
	d.view, err = ranking.NewView(ctx, client, f.prefix, ledger.Shards(cfg.Redis.Shards), cfg.Redis.Timeout)
	if d.view == nil || err != nil && d.boards != nil { // for a whole prefix, a schema that is gone, or of another version, doesn't matter
		return untouched(ctx, err, cfg)
	}
	found, err := d.survey(ctx)
	switch {
	case err != nil:
		return untouched(ctx, err, cfg)
	case found.Keys == 0 && d.boards != nil:
		return fmt.Errorf("no window is listed of %s under the prefix %s: nothing was removed", d.named(), f.prefix)
	case found.Keys == 0:
		fmt.Fprintf(p.Stdout, "There is nothing under the prefix %s.\n", f.prefix)
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
		// Meanwhile a consumer may have started.
		if found, err = d.survey(ctx); err != nil {
			return untouched(ctx, err, cfg)
		}
		if err := d.unused(ctx, found); err != nil {
			return err
		}
	}
	return d.remove(ctx, found)
}

// untouched is an error of Redis before anything was removed.
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
		return fmt.Errorf("that isn't %s: nothing was removed", what)
	case err != nil:
		return errInterrupted
	}
	return nil
}

func what(prefix string, f *ranking.Found) string {
	boards := "no boards"
	if len(f.Boards) > 0 {
		boards = plain(f.Boards)
	}
	return fmt.Sprintf("Under the prefix %s: %s (%s), %s in them, about %s; %s in all.\n",
		prefix, units.Plural(int64(f.Windows), "window"), boards, units.Plural(f.Members, "standing"),
		units.ShortBytes(f.Members*bytesMember), units.Plural(int64(f.Keys), "key"))
}

// plain lists names that something else may have written.
func plain(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = terminal.Plain(name)
	}
	return units.Names(all)
}
