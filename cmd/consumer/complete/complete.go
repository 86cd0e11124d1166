// Package complete completes the names of boards and periods in a shell. It offers the configured periods,
// and the boards that the configuration names or Redis lists. After an error it offers fewer names and
// reports nothing.
package complete

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
)

// within is the maximum time to wait for Redis after the user has pressed Tab.
const within = 2 * time.Second

// BoardAndPeriod completes the arguments BOARD PERIOD.
func BoardAndPeriod(p *cli.Program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return boardNames(c, p)
		case 1:
			return periodNames(p, args[0])
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Board completes the argument BOARD.
func Board(p *cli.Program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return boardNames(c, p)
	}
}

// Flags completes the flags --board and --period, if the command has them.
func Flags(c *cobra.Command, p *cli.Program) {
	for name, offer := range map[string]cobra.CompletionFunc{
		"board": func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return boardNames(c, p)
		},
		"period": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return periodNames(p, "")
		},
	} {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, offer) // fails only if the flag does not exist
		}
	}
}

func boardNames(c *cobra.Command, p *cli.Program) ([]string, cobra.ShellCompDirective) {
	l, err := p.Configuration()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := map[string]bool{}
	for _, board := range l.Config.Boards {
		names[board] = true
	}
	for _, rule := range l.Config.Specs {
		names[rule.Name] = true
	}
	listBoards(c, l.Config, names)
	// Other names may contain characters that the shell interprets.
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return config.CheckBoard(name) != nil })
	return all, cobra.ShellCompDirectiveNoFileComp
}

// listBoards adds the boards that Redis lists under the prefix from the command line, or else the
// configured prefix.
func listBoards(c *cobra.Command, configured *config.Config, names map[string]bool) {
	cfg := *configured
	cfg.Redis.Timeout = min(cfg.Redis.Timeout, within)
	if f := c.Flags().Lookup("prefix"); f != nil && f.Value.String() != "" {
		cfg.Redis.Prefix = f.Value.String()
	}
	if config.CheckPrefix(cfg.Redis.Prefix) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), within)
	defer cancel()
	r, err := app.OpenReader(ctx, &cfg)
	if err != nil {
		return
	}
	defer r.Close()
	windows, err := r.Boards.ListedWindows(ctx, func(string) bool { return true })
	if err != nil {
		return
	}
	for _, w := range windows {
		names[w.Board] = true
	}
}

// periodNames returns the periods of a board in the order of the configuration; for an empty board, all
// periods.
func periodNames(p *cli.Program, board string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if l, err := p.Configuration(); err == nil {
		for _, kept := range l.Config.Kept() {
			if board == "" || l.Config.Has(board, kept.Name) {
				names = append(names, string(kept.Name))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
