package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/archive"
	"github.com/standings/standings/cmd/consumer/ban"
	"github.com/standings/standings/cmd/consumer/boards"
	"github.com/standings/standings/cmd/consumer/check"
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/configcmd"
	"github.com/standings/standings/cmd/consumer/deadletters"
	"github.com/standings/standings/cmd/consumer/diff"
	"github.com/standings/standings/cmd/consumer/drop"
	"github.com/standings/standings/cmd/consumer/explain"
	"github.com/standings/standings/cmd/consumer/export"
	"github.com/standings/standings/cmd/consumer/healthcheck"
	"github.com/standings/standings/cmd/consumer/produce"
	"github.com/standings/standings/cmd/consumer/rebuild"
	"github.com/standings/standings/cmd/consumer/reopen"
	"github.com/standings/standings/cmd/consumer/reshard"
	"github.com/standings/standings/cmd/consumer/run"
	"github.com/standings/standings/cmd/consumer/serve"
	"github.com/standings/standings/cmd/consumer/status"
	"github.com/standings/standings/cmd/consumer/top"
	"github.com/standings/standings/cmd/consumer/version"
	"github.com/standings/standings/internal/app/build"
)

// consumer is the whole program. It returns when everything that it started has ended. Cancelling ctx ends
// it gracefully, as the first SIGTERM does.
func consumer(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &cli.Program{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr, Interactive: cli.Interactive(stdin)}
	// The version uses no template of its own: with text/template the linker cannot remove unused methods,
	// a quarter of the program.
	name, _ := build.Version()
	root := p.Root(name)
	group(root, "Run:", append(withDemo(p),
		run.Command(p),
		serve.Command(p),
		configcmd.Command(p),
		check.Command(p),
		healthcheck.Command(p),
		produce.Command(p),
		version.Command(p),
	)...)
	group(root, "Read:",
		top.Command(p),
		top.RankCommand(p),
		explain.Command(p),
		boards.Command(p),
		export.Command(p),
		status.Command(p),
		diff.Command(p),
	)
	group(root, "Repair:",
		deadletters.Command(p),
		rebuild.Command(p),
		reopen.Command(p),
		reshard.Command(p),
		archive.Command(p),
		drop.Command(p),
	)
	group(root, "Moderate:",
		ban.Command(p),
		ban.UnbanCommand(p),
		ban.ListCommand(p),
		ban.EraseCommand(p),
	)
	return p.Run(ctx, root, args)
}

// group adds commands that the help lists under one title.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}
