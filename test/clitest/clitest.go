// Package clitest runs commands like main does, and provides the servers and data that their tests need.
package clitest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/standings/standings/cmd/consumer/cli"
)

// Execute runs a command line in a program that has only this command, with empty input and only the given
// environment.
func Execute(t *testing.T, command func(*cli.Program) *cobra.Command, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &cli.Program{Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	code = p.Run(t.Context(), p.Root("unknown", command(p)), args)
	return code, out.String(), errs.String()
}

// Watched runs a command with --watch that writes to a pipe, at most ten times a second. interrupt ends it like SIGINT,
// and returns its exit code.
func Watched(t *testing.T, command func(*cli.Program) *cobra.Command, environ []string, args ...string) (lines *bufio.Scanner, interrupt func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		p := &cli.Program{Environ: environ, Stdout: w, Stderr: io.Discard}
		ended <- p.Run(ctx, p.Root("unknown", command(p)), append(args, "--watch", "--every", "100ms"))
		_ = w.Close()
	}()
	return bufio.NewScanner(r), func() int {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		return <-ended
	}
}

// Config writes a configuration file and returns its path.
func Config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "standings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FakeKafka starts a broker for this test, and returns it with the environment that connects to it.
func FakeKafka(t *testing.T, options ...kfake.Opt) (*kfake.Cluster, []string) {
	t.Helper()
	options = append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(4, "points")}, options...)
	c, err := kfake.NewCluster(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, []string{"STANDINGS_KAFKA_BROKERS=" + strings.Join(c.ListenAddrs(), ",")}
}

// ClosedPort returns an address on which no process listens during the test. It is the client's end of a connection,
// so no other test can get the port meanwhile.
func ClosedPort(t *testing.T) string {
	t.Helper()
	c, err := net.Dial("tcp", SilentPort(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

// SilentPort returns an address that accepts connections and never answers.
func SilentPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
