package produce

import (
	"context"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// execute runs a command line until ctx ends.
func execute(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &cli.Program{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return p.Run(ctx, p.Root("unknown", Command(p)), args)
}
