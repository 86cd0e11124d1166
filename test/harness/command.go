package harness

// This file runs commands of the consumer that end by themselves.

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os/exec"
	"testing"
)

// Said is the exit code and output of a command.
type Said struct {
	Code           int
	Stdout, Stderr string
}

// Run runs a command of the consumer at this place to its end, with additional settings. A command that
// does not end in time is killed, and its code is -1.
func (p *Place) Run(t testing.TB, settings map[string]string, args ...string) Said {
	t.Helper()
	binary := Binary(t) // the first call builds it, outside the command's timeout
	ctx, cancel := context.WithTimeout(t.Context(), Within)
	defer cancel()
	all := maps.Clone(p.Settings)
	maps.Copy(all, settings)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = p.Environment(all)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("consumer %v: %v", args, err)
	}
	return Said{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Command runs a command to its end and returns its output. The command must succeed.
func (p *Place) Command(t testing.TB, args ...string) []byte {
	t.Helper()
	got := p.Run(t, nil, args...)
	if got.Code != 0 {
		t.Fatalf("consumer %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	return []byte(got.Stdout)
}
