// Package complete is what a shell offers for the next word of a command line: boards and
// windows as Redis and the archive have them, periods as they are configured. Whatever goes wrong, it offers less,
// and says nothing.
package complete

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/boards"
)

// Within is how long somebody who pressed Tab waits for Redis. Tests wait for longer, as their
// machine may be busy.
var Within = 500 * time.Millisecond

// BoardAndPeriod completes the arguments BOARD PERIOD; after them there is nothing to offer.
func BoardAndPeriod(p *cli.Program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return listedBoards(c, p)
		case 1:
			return keptPeriods(c, p, args[0])
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// BoardPeriodAndWindow completes the arguments BOARD PERIOD WINDOW.
func BoardPeriodAndWindow(p *cli.Program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 2 {
			return listedWindows(c, p, args)
		}
		return BoardAndPeriod(p)(c, args, word)
	}
}

// Board completes the argument BOARD.
func Board(p *cli.Program) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return listedBoards(c, p)
	}
}

// Flags completes those of a command's flags that name a board, a period or a window. Where its
// arguments are BOARD PERIOD, a window is one of those.
func Flags(c *cobra.Command, p *cli.Program) {
	for name, offer := range map[string]cobra.CompletionFunc{
		"board": func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return listedBoards(c, p)
		},
		"period": func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return keptPeriods(c, p, "")
		},
		"window": func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return listedWindows(c, p, args)
		},
	} {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, offer) // it fails for a flag that isn't there, or has one already
		}
	}
}

// configured is the configuration, with the prefix of the command line where that has one.
func configured(c *cobra.Command, p *cli.Program) *config.Config {
	l, err := p.Configuration()
	if err != nil {
		return nil
	}
	cfg := *l.Config
	cfg.Redis.Timeout = min(cfg.Redis.Timeout, Within)
	if f := c.Flags().Lookup("prefix"); f != nil && f.Value.String() != "" {
		cfg.Redis.Prefix = f.Value.String()
	}
	return &cfg
}

// listed are the windows that Redis has of some boards; of a Redis that is away, or slow, none.
func listed(c *cobra.Command, cfg *config.Config, match func(board string) bool) []boards.Listed {
	if config.CheckPrefix(cfg.Redis.Prefix) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), Within)
	defer cancel()
	r, err := clients.OpenReader(ctx, cfg)
	if err != nil {
		return nil
	}
	defer r.Close()
	all, err := r.Boards.ListedWindows(ctx, match)
	if err != nil {
		return nil
	}
	return all
}

// offered are words in order, but those that a shell could take for something else.
func offered(words map[string]bool) ([]string, cobra.ShellCompDirective) {
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(words)), func(word string) bool {
		return word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != ""
	})
	return all, cobra.ShellCompDirectiveNoFileComp
}

// listedBoards are the boards that are configured by name, and those that Redis has.
func listedBoards(c *cobra.Command, p *cli.Program) ([]string, cobra.ShellCompDirective) {
	words := map[string]bool{}
	if cfg := configured(c, p); cfg != nil {
		for _, board := range cfg.Boards {
			words[board] = true
		}
		for _, w := range listed(c, cfg, func(string) bool { return true }) {
			words[w.Board] = true
		}
		addBoards(c, cfg, words)
	}
	return offered(words)
}

// keptPeriods are those that a board has; of any board, if it is empty.
func keptPeriods(c *cobra.Command, p *cli.Program, board string) ([]string, cobra.ShellCompDirective) {
	var names []string // in the order of the configuration
	if cfg := configured(c, p); cfg != nil {
		for _, kept := range cfg.Kept() {
			if board == "" || cfg.Has(board, kept.Name) {
				names = append(names, string(kept.Name))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// listedWindows are those of the board and the period that are given, or of all; and what top and
// rank take besides.
func listedWindows(c *cobra.Command, p *cli.Program, args []string) ([]string, cobra.ShellCompDirective) {
	words := map[string]bool{}
	cfg := configured(c, p)
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var board string
	var period periods.Period
	if len(args) > 1 {
		board, period = args[0], periods.Period(args[1])
		words["current"], words["previous"] = true, true
	}
	for _, w := range listed(c, cfg, func(of string) bool { return board == "" || of == board }) {
		if period == "" || w.Period == string(period) {
			words[w.Name] = true
		}
	}
	addWindows(c, cfg, board, string(period), words)
	return offered(words)
}
