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

// This file defines flag types and the errors of a wrong command line.

// ErrUsage marks a command line that cannot be executed.
var ErrUsage = errors.New("usage")

// ErrNoAnswer marks an error that prevented an answer, for commands whose exit code 1 is an answer.
var ErrNoAnswer = errors.New("no answer")

// marked is an error that is also its mark, which its text does not show.
type marked struct {
	error
	mark error
}

func (e marked) Unwrap() []error { return []error{e.error, e.mark} }

// Usagef returns an error in the command line; the command has done nothing.
func Usagef(format string, args ...any) error { return marked{fmt.Errorf(format, args...), ErrUsage} }

// NoAnswer marks err so that the command ends with ExitUsage, as diff(1) does. Exit code 1 then always
// means that the answer is no.
func NoAnswer(err error) error { return marked{err, ErrNoAnswer} }

// knownCommand rejects arguments of the root command, which name a command that does not exist.
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

// ExactArgs requires n arguments, as many as the command's usage line names.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("%s takes %d arguments, not %d: %s", c.CommandPath(), n, len(args), c.UseLine())
		}
		return nil
	}
}

// Duration returns a flag for a duration, which may have days and weeks. The flag stores its value in p.
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
