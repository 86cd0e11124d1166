package main

// The root command: which subcommands there are.

import (
	"context"
	"io"

	"github.com/standings/standings/cmd/consumer/boards"
	"github.com/standings/standings/cmd/consumer/check"
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/deadletters"
	"github.com/standings/standings/cmd/consumer/diff"
	"github.com/standings/standings/cmd/consumer/drop"
	"github.com/standings/standings/cmd/consumer/rebuild"
)

// run is the whole program: it returns when everything it started has ended.
// Cancelling ctx ends it in order, as a first SIGTERM does.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &cli.Program{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	// No template of our own for the version: text/template keeps the linker from
	// leaving out methods that nobody calls, a quarter of the program.
	version, _ := buildVersion()
	root := p.Root(version,
		newRunCommand(p),
		newConfigCommand(p),
		check.Command(p),
		newProduceCommand(p),
		newTopCommand(p),
		newRankCommand(p),
		boards.Command(p),
		newStatusCommand(p),
		deadletters.Command(p),
		rebuild.Command(p),
		diff.Command(p),
		drop.Command(p),
		newHealthcheckCommand(p),
		newDemoCommand(p),
		newVersionCommand(p),
	)
	return p.Run(ctx, root, args)
}
