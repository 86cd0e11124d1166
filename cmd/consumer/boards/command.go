// Package boards implements the command boards: it lists the boards and the windows of each.
package boards

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/complete"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	shards "github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/zoneinfo"
)

const defaultLimit = 100

// Command returns the boards command for a program.
func Command(p *cli.Program) *cobra.Command {
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:   "boards [BOARD]",
		Short: "List boards and their windows",
		Long: `Lists the windows under the configured prefix by board, period and start, with their number of
members. BOARD is a name, or NAME* for all boards with this prefix. Times are
in time_zone; an end is exclusive.

It lists at most --limit windows and counts all. Windows whose retention is over are not
listed. "gone" instead of members: Redis has lost the window; "consumer top" shows the
remedy. If no board matches, the exit code is 1.`,
		Example: `  consumer boards
  consumer boards 'eu*' --limit 0
  consumer boards global --json`,
		ValidArgsFunction: complete.Board(p),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("consumer boards takes at most one board, not %d; quote patterns such as 'eu*'", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return cli.Usagef("--limit must be at least 0 (0: all)")
			}
			pattern := "*"
			if len(args) == 1 {
				pattern = args[0]
			}
			if err := checkPattern(pattern); err != nil {
				return err
			}
			return show(c.Context(), p, pattern, limit, asJSON)
		},
	}
	c.Flags().IntVar(&limit, "limit", defaultLimit, "maximum number of `windows` (0: all)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// checkPattern checks a board's name, or a prefix followed by *.
func checkPattern(pattern string) error {
	name, all := strings.CutSuffix(pattern, "*")
	if all && name == "" {
		return nil
	}
	if err := config.CheckBoard(name); err != nil {
		return cli.Usagef("%q %w", pattern, err)
	}
	return nil
}

func matches(pattern, board string) bool {
	begin, all := strings.CutSuffix(pattern, "*")
	return board == begin || all && strings.HasPrefix(board, begin)
}

func show(ctx context.Context, p *cli.Program, pattern string, limit int, asJSON bool) error {
	l, err := p.Configuration()
	if err != nil {
		return err
	}
	r, err := app.OpenReader(ctx, l.Config)
	if err != nil {
		return err
	}
	defer r.Close()
	all, err := r.Boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return app.ExplainRedis(ctx, err, l.Config)
	}
	matching := slices.DeleteFunc(slices.Clone(all), func(w shards.Listed) bool { return !matches(pattern, w.Board) })
	if len(matching) == 0 && pattern != "*" {
		return noBoard(l.Config, all, pattern)
	}
	found, err := gather(ctx, r.Boards, matching, limit)
	if err != nil {
		return app.ExplainRedis(ctx, err, l.Config)
	}
	found.Prefix = l.Config.Redis.Prefix
	if asJSON {
		return cli.WriteJSON(p.Stdout, found)
	}
	zone, err := zoneinfo.Load(l.Config.TimeZone)
	if err != nil {
		return err
	}
	return terminal.Write(p.Stdout, found.text(zone))
}

// gather sorts the windows and counts the members of those that are shown.
func gather(ctx context.Context, store *shards.Boards, all []shards.Listed, limit int) (*report, error) {
	sortWindows(all)
	boards := slices.CompactFunc(slices.Clone(all), func(a, b shards.Listed) bool { return a.Board == b.Board })
	found := &report{Boards: int64(len(boards)), WindowCount: int64(len(all)), Windows: []windowReport{}}
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	members, err := store.MembersOf(ctx, all)
	if err != nil {
		return nil, err
	}
	for i, w := range all {
		found.Windows = append(found.Windows, reportWindow(w.Window, members[i]))
	}
	return found, nil
}
