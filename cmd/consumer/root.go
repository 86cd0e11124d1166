package main

// The root command: what every subcommand shares, and how an error becomes a
// line and an exit code.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/config"
)

// Exit codes. A second signal ends with 128 + its number, from main.
const (
	exitOK      = 0
	exitFailure = 1 // it was tried and failed
	exitUsage   = 2 // the command line or the configuration is wrong: nothing was tried
)

// program is what a process is given: all that main knows and a test replaces.
type program struct {
	environ []string // NAME=value, as os.Environ returns it
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer

	configPath string // --config
}

// configuration is what the file and the environment say, validated. Its error holds
// every problem, one a line.
func (p *program) configuration() (*config.Loaded, error) {
	return config.Load(p.configPath, p.environ)
}

// run is the whole program: it returns when everything it started has ended.
// Cancelling ctx ends it in order, as a first SIGTERM does.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{environ: environ, stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(p)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line != "" {
			fmt.Fprintf(stderr, "consumer: %s\n", line)
		}
	}
	if errors.Is(err, errUsage) || errors.Is(err, config.ErrInvalid) {
		return exitUsage
	}
	return exitFailure
}

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "consumer",
		Short: "Leaderboards in Redis from events in Kafka, exactly once",
		Long: `consumer reads points-earned events from Kafka and keeps weekly, monthly and
yearly leaderboards in Redis sorted sets: no point lost, none counted twice,
equal points ranked by who got there first.`,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// No template of our own for it: text/template keeps the linker from leaving out
	// methods that nobody calls, a quarter of the program.
	root.Version, _ = buildVersion()
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.PersistentFlags().StringVar(&p.configPath, "config", "",
		"read the configuration from this YAML `file` (environment: "+config.FileVariable+")")
	root.AddCommand(
		newRunCommand(p),
		newConfigCommand(p),
		newCheckCommand(p),
		newProduceCommand(p),
		newTopCommand(p),
		newRankCommand(p),
		newStatusCommand(p),
		newDeadLettersCommand(p),
		newHealthcheckCommand(p),
		newDemoCommand(p),
	)
	return root
}

// errUsage marks a command line that can't be carried out.
var errUsage = errors.New("usage")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }
func (e usageError) Unwrap() error      { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// knownCommand refuses what is left on the root: a command that doesn't exist.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("there is no command %q; did you mean %q?", args[0], near[0])
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("there is no command %q; there are %s", args[0], strings.Join(names, ", "))
}

// exactArgs takes as many arguments as the command's usage line names.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %d arguments, not %d: %s", c.CommandPath(), n, len(args), c.UseLine())
		}
		return nil
	}
}
