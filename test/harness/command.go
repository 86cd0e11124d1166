package harness

// Commands of the consumer that end by themselves.

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
)

// Command runs a command of the consumer at this place to its end, which has to be
// in order, and returns what it printed.
func (p *Place) Command(t testing.TB, args ...string) []byte {
	t.Helper()
	binary := Binary(t) // which the first one builds: none of the command's time
	ctx, cancel := context.WithTimeout(t.Context(), callWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = p.Environment(p.Settings)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("consumer %v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}
