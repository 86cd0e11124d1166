// Package drop is the command drop: some boards, or everything under a prefix, removed.
package drop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

const (
	// pause is left to Redis after each call, whose keys it frees in the background.
	pause = 5 * time.Millisecond
	// bytesMember is about what a member takes in a window.
	bytesMember = 120
)

// betweenLooks is how long the prefix is watched for a sign of a consumer: one that has
// just started, and has nothing to count, gives none but its lines.
var betweenLooks = ranking.ReportEvery + 2*time.Second

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

Without --board: removes the boards under a prefix, and all that stands beside them. It shows what
that is, and asks for the prefix to be typed. Redis frees it in the background.

It refuses a prefix that a consumer uses: one that has reported within 30 seconds, or
reports or counts in the 12 seconds for which the prefix is watched; and one that is
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
			case len(f.boards) > 0:
				if err := checkBoards(f.boards); err != nil {
					return err
				}
				return runBoards(c.Context(), p, l.Config, &f)
			case f.prefix == l.Config.Redis.Prefix && !f.force:
				return cli.Usagef("%s is the prefix of this configuration (redis.prefix): if that is what you mean to remove, say --force", f.prefix)
			}
			return run(c.Context(), p, l.Config, &f)
		},
	}
	c.Flags().StringVar(&f.prefix, "prefix", "", "the `prefix` under which everything is removed")
	c.Flags().StringArrayVar(&f.boards, "board", nil, "drop the board of this `name` alone, or with name* all that begin so; once for each")
	c.Flags().BoolVar(&f.yes, "yes", false, "don't ask")
	c.Flags().BoolVar(&f.force, "force", false, "remove it even if it is the configured prefix")
	return c
}

func run(ctx context.Context, p *cli.Program, cfg *config.Config, f *flags) error {
	if !f.yes && !asks(p) {
		return cli.Usagef("there is no terminal to ask on: say --yes")
	}
	client, err := clients.NewRedis(cfg, nil)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is in flight any more
	v, err := ranking.NewView(ctx, client, f.prefix, cfg.Redis.Timeout)
	if v == nil { // a schema that is gone, or of another version, doesn't matter
		return untouched(ctx, err, cfg)
	}
	found, err := v.Survey(ctx)
	if err != nil {
		return untouched(ctx, err, cfg)
	}
	if found.Keys == 0 {
		fmt.Fprintf(p.Stdout, "There is nothing under the prefix %s.\n", f.prefix)
		return nil
	}
	if err := terminal.Write(p.Stdout, what(f.prefix, found)); err != nil {
		return fmt.Errorf("write what would be removed: %w; nothing was removed", err)
	}
	if err := unused(ctx, cfg, v, found); err != nil {
		return err
	}
	if !f.yes {
		if err := ask(ctx, p, "To remove all of it, type the prefix: ", "the prefix", f.prefix); err != nil {
			return err
		}
		// Meanwhile one may have started.
		if found, err = v.Survey(ctx); err != nil {
			return untouched(ctx, err, cfg)
		}
		if err := unused(ctx, cfg, v, found); err != nil {
			return err
		}
	}
	return remove(ctx, p, cfg, v, found)
}

// untouched is an error of Redis before anything was removed.
func untouched(ctx context.Context, err error, cfg *config.Config) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return clients.ExplainRedis(ctx, err, cfg)
}

// asks reports whether there is somebody to ask. A test says that there is.
var asks = func(p *cli.Program) bool {
	in, ok := p.Stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

var errInterrupted = errors.New("interrupted: nothing was removed")

// ask returns nil once what is asked for is typed. A terminal's read ends with a line alone, so
// it is left behind where the context ends first: the process ends then, too.
func ask(ctx context.Context, p *cli.Program, question, what, answer string) error {
	fmt.Fprint(p.Stderr, question)
	typed := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(p.Stdin).ReadString('\n')
		if err != nil {
			line = "" // what ends without Enter wasn't meant
		}
		typed <- line
	}()
	select {
	case line := <-typed:
		if strings.TrimSpace(line) != answer {
			return fmt.Errorf("that isn't %s: nothing was removed", what)
		}
		return nil
	case <-ctx.Done():
		fmt.Fprintln(p.Stderr) // what is said next begins a line
		return errInterrupted
	}
}

func what(prefix string, f *ranking.Found) string {
	boards := "no boards"
	if len(f.Boards) > 0 {
		const most = 5
		boards = plain(f.Boards[:min(most, len(f.Boards))])
		if len(f.Boards) > most {
			boards += fmt.Sprintf(" and %d more", len(f.Boards)-most)
		}
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
	return strings.Join(all, ", ")
}

// unused refuses a prefix that a consumer uses.
func unused(ctx context.Context, cfg *config.Config, v *ranking.View, f *ranking.Found) error {
	if len(f.Used) > 0 {
		owners := map[string]bool{}
		for _, owner := range f.Used {
			owners[owner] = true
		}
		return fmt.Errorf("%s is in use: %s reported within the last 30 seconds, for %s. Stop them and wait that long; nothing was removed",
			v.Prefix, plain(slices.Sorted(maps.Keys(owners))), units.Plural(int64(len(f.Used)), "partition"))
	}
	if f.Rebuilding {
		return fmt.Errorf("%s is in use: a rebuild is under way there, or was killed less than a minute ago; nothing was removed", v.Prefix)
	}
	select {
	case <-time.After(betweenLooks):
	case <-ctx.Done():
		return errInterrupted
	}
	moves, err := v.Moves(ctx, f)
	if err != nil {
		return untouched(ctx, err, cfg)
	}
	if moves {
		return fmt.Errorf("%s is in use: a consumer counts or reports there. Stop it, and wait half a minute; nothing was removed", v.Prefix)
	}
	return nil
}

// remove removes what was found, and what came meanwhile.
func remove(ctx context.Context, p *cli.Program, cfg *config.Config, v *ranking.View, found *ranking.Found) error {
	var done atomic.Int64
	began, keys := time.Now(), 0
	for range 3 {
		bar := terminal.ShowProgress(p.Stderr, "removed", "keys", int64(keys+found.Keys), done.Load)
		err := v.Drop(ctx, found, pause, func(n int) { done.Store(int64(keys + n)) })
		bar.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: a part of %s is left, which the same command removes; a consumer that starts there halts", v.Prefix)
		}
		if err != nil {
			return clients.ExplainRedis(ctx, err, cfg)
		}
		keys += found.Keys
		if found, err = v.Survey(ctx); err != nil {
			return clients.ExplainRedis(ctx, err, cfg)
		}
		if found.Keys == 0 {
			fmt.Fprintf(p.Stdout, "Removed %s in %s: nothing is left under %s.\n", units.Plural(int64(keys), "key"), time.Since(began).Round(time.Millisecond), v.Prefix)
			return nil
		}
		if len(found.Used) > 0 || found.Rebuilding { // with the listing gone, a consumer that waits begins
			return fmt.Errorf("%s was taken into use while it was removed: what was written since is left (%s). Stop the consumers, and wait half a minute",
				v.Prefix, units.Plural(int64(found.Keys), "key"))
		}
	}
	return fmt.Errorf("%s of %s are back: something writes them", units.Plural(int64(found.Keys), "key"), v.Prefix)
}
