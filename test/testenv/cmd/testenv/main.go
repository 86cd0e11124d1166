// Command testenv runs a command, such as go test, with one Kafka and one Redis for the whole run, and
// prints which they are:
//
//	go run ./test/testenv/cmd/testenv go test ./...
//
// With the build tag nodocker it starts no containers and does not include Docker's client, which takes a minute
// to download and build.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/standings/standings/test/testenv"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testenv COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(max(failed.ExitCode(), 1)) // the command has printed the error
	case err != nil:
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
}

// run runs the command, and serves containers to this process and to the command meanwhile.
func run(ctx context.Context, command []string) error {
	socket, end, err := containersSocket(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := os.Setenv(testenv.ContainersVariable, socket); err != nil {
		return err
	}
	return testenv.Run(ctx, os.Stdout, os.Stderr, command)
}
