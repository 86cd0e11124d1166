// Package snapshot is the command snapshot: take a snapshot of the standings, list those that there are,
// and verify them.
package snapshot

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
)

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Take a snapshot of the standings, list those there are, and verify them",
		Args:  cli.ExactArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(takeCommand(p), listCommand(p), verifyCommand(p))
	return c
}

// open opens the place of the configuration.
func open(ctx context.Context, p *cli.Program) (*config.Config, *clients.Snapshots, error) {
	l, err := p.Configuration()
	if err != nil {
		return nil, nil, err
	}
	s, err := clients.OpenSnapshots(ctx, l.Config)
	if err != nil {
		return nil, nil, err
	}
	if s == nil {
		return nil, nil, cli.Usagef("snapshots.url isn't set: it says where snapshots are kept")
	}
	return l.Config, s, nil
}

func takeCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "take",
		Short: "Take a snapshot now",
		Long: `Takes a snapshot as consumer run does once an interval, into the place of snapshots.url. Consumers go
on meanwhile. None is removed: run removes old ones after the next one that it takes.`,
		Example: `  consumer snapshot take
  consumer snapshot take --json`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return take(c.Context(), p, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func listCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the snapshots there are",
		Long: `Lists the snapshots that are whole, of every prefix, the newest first. Times are those of time_zone.

The exit code is 1 where there is one that lacks something, or whose manifest can't be read.`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return list(c.Context(), p, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func verifyCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Read a snapshot and compare its checksums",
		Long: `Reads all of a snapshot, by default of the newest one under redis.prefix, and compares every checksum,
as a restore does before it changes anything.

The exit code is 1 where something differs, or can't be read.`,
		Example: `  consumer snapshot verify
  consumer snapshot verify 20261125T190000Z-abcdefgh --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("consumer snapshot verify takes a name, or nothing, not %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return verify(c.Context(), p, name, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
