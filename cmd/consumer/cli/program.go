// Package cli is what every command is made with: what a process is given, how a
// wrong command line is distinguished from a failure, and how an error becomes lines and an
// exit code.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/safejson"
	"github.com/standings/standings/internal/terminal"
)

// Exit codes. A second signal ends with 128 + its number, from main.
const (
	ExitOK      = 0
	ExitFailure = 1 // it was tried and failed
	ExitUsage   = 2 // the command line or the configuration is wrong: nothing was tried, or see NoAnswer
)

// Program is what a process is given: all that main knows and a test replaces.
type Program struct {
	Environ []string // NAME=value, as os.Environ returns it
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Interactive: there is somebody to ask, who types on Stdin.
	Interactive bool

	ConfigPath string // --config
}

// Configuration is what the file and the environment say, validated. Its error holds
// every problem, one a line.
func (p *Program) Configuration() (*config.Loaded, error) {
	return config.Load(p.ConfigPath, p.Environ)
}

// Colours reports whether what is written to w may have colours: on a terminal, unless
// NO_COLOR is set to anything but nothing (https://no-color.org), or TERM is dumb.
func (p *Program) Colours(w io.Writer) bool {
	_, onTerminal := terminal.Width(w)
	return onTerminal && coloursWanted(p.Environ)
}

// DrawsInPlace reports whether what is written to w can be drawn in place: on a terminal, unless
// TERM is dumb.
func (p *Program) DrawsInPlace(w io.Writer) bool {
	_, onTerminal := terminal.Width(w)
	return onTerminal && !slices.Contains(p.Environ, dumb)
}

// dumb is a terminal that shows text, and acts on no escape sequence.
const dumb = "TERM=dumb"

func coloursWanted(environ []string) bool {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if name == "NO_COLOR" && value != "" || pair == dumb {
			return false
		}
	}
	return true
}

// Run carries out a command line on root and returns the exit code, once everything
// that was started has ended. Cancelling ctx ends it in order, as a first SIGTERM does.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if !errors.As(err, new(*loggedError)) {
		for line := range Lines(err) {
			fmt.Fprintf(p.Stderr, "consumer: %s\n", terminal.Harmless(line))
		}
	}
	if errors.Is(err, ErrUsage) || errors.Is(err, ErrNoAnswer) || errors.Is(err, config.ErrInvalid) {
		return ExitUsage
	}
	return ExitFailure
}

// Lines are those of an error: one a problem.
func Lines(err error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if line != "" && !yield(line) {
				return
			}
		}
	}
}

// Logged is err for a command that has logged it: Run takes its exit code, and writes
// nothing.
func Logged(err error) error { return &loggedError{err} }

type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// Root is the command consumer with its subcommands, all of which are made for p.
func (p *Program) Root(version string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "consumer",
		Short: "Leaderboards in Redis from events in Kafka, exactly once",
		Long: `consumer reads points-earned events from Kafka and maintains weekly, monthly and
yearly leaderboards in Redis sorted sets: no event is lost or counted twice, and
equal points rank by who reached them first.`,
		Version:       version,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.PersistentFlags().StringVar(&p.ConfigPath, "config", "",
		"read the configuration from this YAML `file` (environment: "+config.FileVariable+")")
	root.AddCommand(commands...)
	return root
}

// WriteJSON writes v for programs and people, without characters that a terminal acts on.
func WriteJSON(w io.Writer, v any) error {
	out := json.NewEncoder(safejson.NewWriter(w))
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// writeJSONLine writes v in one line, for programs that read one document after another.
func writeJSONLine(w io.Writer, v any) error {
	out := json.NewEncoder(safejson.NewWriter(w))
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
