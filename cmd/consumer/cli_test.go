package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
)

// ends runs a command that ends with an error.
func ends(t *testing.T, with error) (code int, stderr string) {
	t.Helper()
	var errs bytes.Buffer
	p := &cli.Program{Stderr: &errs}
	root := p.Root("unknown", &cobra.Command{Use: "fail", RunE: func(*cobra.Command, []string) error { return with }})
	code = p.Run(t.Context(), root, []string{"fail"})
	return code, errs.String()
}

func TestAnErrorIsLinesOfWhichATerminalActsOnNothing(t *testing.T) {
	code, stderr := ends(t, errors.New("a rebuild is under way: by \x1b]0;pwned\a\u009b2J\nand\tmore\n"))
	if want := "consumer: a rebuild is under way: by \\x1b]0;pwned\\x07\\u009b2J\nconsumer: and\\x09more\n"; stderr != want || code != cli.ExitFailure {
		t.Errorf("code %d: %q", code, stderr)
	}
	if code, stderr = ends(t, fmt.Errorf("--board %q isn't a \x1b board's name", "\x1b")); code != cli.ExitFailure || stderr != "consumer: --board \"\\x1b\" isn't a \\x1b board's name\n" {
		t.Errorf("code %d: %q", code, stderr)
	}
}

func TestWhatKeepsACommandFromAnAnswerIsNotTakenForItsAnswer(t *testing.T) {
	away := errors.New("can't connect")
	for err, want := range map[error]int{
		errors.New("they differ"):                     cli.ExitFailure,
		cli.NoAnswer(away):                            cli.ExitUsage,
		fmt.Errorf("compare: %w", cli.NoAnswer(away)): cli.ExitUsage,
		cli.Usagef("no such thing"):                   cli.ExitUsage,
	} {
		if code, _ := ends(t, err); code != want {
			t.Errorf("%v: code %d, want %d", err, code, want)
		}
	}
	if err := cli.NoAnswer(away); !errors.Is(err, away) || !errors.Is(err, cli.ErrNoAnswer) || errors.Is(err, cli.ErrUsage) {
		t.Errorf("%v", err)
	}
}
