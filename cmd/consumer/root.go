package main

// The root command: which subcommands there are.

import (
	"context"
	"io"

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

// consumer is the whole program: it returns when everything it started has ended.
// Cancelling ctx ends it in order, as a first SIGTERM does.
func consumer(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &cli.Program{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr, Interactive: cli.Interactive(stdin)}
	// No template of our own for the version: text/template keeps the linker from
	// leaving out methods that nobody calls, a quarter of the program.
	name, _ := build.Version()
	root := p.Root(name, append(withDemo(p),
		run.Command(p),
		serve.Command(p),
		configcmd.Command(p),
		check.Command(p),
		produce.Command(p),
		top.Command(p),
		top.RankCommand(p),
		explain.Command(p),
		boards.Command(p),
		export.Command(p),
		archive.Command(p),
		status.Command(p),
		deadletters.Command(p),
		ban.Command(p),
		ban.UnbanCommand(p),
		ban.ListCommand(p),
		ban.EraseCommand(p),
		rebuild.Command(p),
		reshard.Command(p),
		reopen.Command(p),
		diff.Command(p),
		drop.Command(p),
		healthcheck.Command(p),
		version.Command(p),
	)...)
	return p.Run(ctx, root, args)
}
