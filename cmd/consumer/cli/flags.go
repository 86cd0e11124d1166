package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/standings/standings/internal/units"
)

// What a command line may hold, and what is wrong with one.

// ErrUsage marks a command line that can't be carried out.
var ErrUsage = errors.New("usage")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func (e usageError) Unwrap() error { return e.error }

// Usagef is an error of the command line: nothing was tried.
func Usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// ErrNoAnswer marks what kept a command from an answer whose exit code 1 is an answer.
var ErrNoAnswer = errors.New("no answer")

type noAnswerError struct{ error }

func (noAnswerError) Is(target error) bool { return target == ErrNoAnswer }

func (e noAnswerError) Unwrap() error { return e.error }

// NoAnswer is an error by which a command ends with ExitUsage, as diff(1) does: so that 1
// says nothing but that its answer is no.
func NoAnswer(err error) error { return noAnswerError{err} }

// knownCommand refuses what is left on the root: a command that doesn't exist.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return Usagef("unknown command %q; did you mean %q?", args[0], near[0])
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return Usagef("unknown command %q; use %s", args[0], strings.Join(names, ", "))
}

// ExactArgs takes as many arguments as the command's usage line names.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("%s takes %d arguments, not %d: %s", c.CommandPath(), n, len(args), c.UseLine())
		}
		return nil
	}
}

// Duration is a flag that is a duration, days and weeks included, kept in p.
func Duration(p *time.Duration) pflag.Value { return durationFlag{p} }

type durationFlag struct{ p *time.Duration }

func (d durationFlag) String() string {
	if d.p == nil || *d.p == 0 {
		return ""
	}
	return units.FormatDuration(*d.p)
}

func (d durationFlag) Set(text string) error {
	given, err := units.ParseDuration(text)
	if err == nil {
		*d.p = given
	}
	return err
}

func (durationFlag) Type() string { return "duration" }
