// Package cli holds what all commands share: the environment of the process, usage errors, and the
// conversion of an error into lines and an exit code.
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

// Exit codes. After a second signal main exits with 128 + the signal's number.
const (
	ExitOK      = 0
	ExitFailure = 1 // the command tried and failed
	ExitUsage   = 2 // the command line or the configuration is wrong and nothing was tried, or see NoAnswer
)

// Program is the environment of the process. Tests replace it.
type Program struct {
	Environ []string // NAME=value, as os.Environ returns it
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Interactive reports whether a person can answer questions on Stdin.
	Interactive bool

	ConfigPath string // --config
}

// Configuration loads and validates the configuration from file and environment. Its error holds every
// problem, one per line.
func (p *Program) Configuration() (*config.Loaded, error) {
	return config.Load(p.ConfigPath, p.Environ)
}

// Colours reports whether output to w may have colours: if it can be redrawn in place, and NO_COLOR is
// unset or empty (https://no-color.org).
func (p *Program) Colours(w io.Writer) bool {
	unwanted := slices.ContainsFunc(p.Environ, func(pair string) bool {
		return strings.HasPrefix(pair, "NO_COLOR=") && pair != "NO_COLOR="
	})
	return p.DrawsInPlace(w) && !unwanted
}

// DrawsInPlace reports whether output to w can be redrawn in place: if w is a terminal and TERM is not dumb.
func (p *Program) DrawsInPlace(w io.Writer) bool {
	_, onTerminal := terminal.Width(w)
	return onTerminal && !slices.Contains(p.Environ, "TERM=dumb")
}

// Run executes a command line on root and returns the exit code after everything that it started has ended.
// Cancelling ctx ends the command gracefully, as the first SIGTERM does.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if !errors.Is(err, errLogged) {
		for line := range Lines(err) {
			fmt.Fprintf(p.Stderr, "consumer: %s\n", terminal.Harmless(line))
		}
	}
	if errors.Is(err, ErrUsage) || errors.Is(err, ErrNoAnswer) || errors.Is(err, config.ErrInvalid) {
		return ExitUsage
	}
	return ExitFailure
}

// Lines returns the lines of an error, one per problem.
func Lines(err error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if line != "" && !yield(line) {
				return
			}
		}
	}
}

var errLogged = errors.New("logged")

// Logged marks err as already logged: Run derives the exit code from it and writes nothing.
func Logged(err error) error { return marked{err, errLogged} }

// Root returns the command consumer with its subcommands, which must be made for p.
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

// WriteJSON writes v with indentation, for programs and people. Control characters are escaped.
func WriteJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// writeJSON writes v as one line if indent is empty, for programs that read a stream of documents.
func writeJSON(w io.Writer, v any, indent string) error {
	out := json.NewEncoder(safejson.NewWriter(w))
	out.SetIndent("", indent)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
