package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// A signal to a process and to its group arrives twice.
func TestTwoSignalsThatComeTogetherAreOneOrder(t *testing.T) {
	p := refused(t, built(t), "1s")
	// While the process is stopped, signals accumulate, and it then receives them together, however busy
	// the machine is. Two signals of one kind would become one.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCONT} {
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.Wait() // the exit code is checked below
	if got := p.ProcessState.ExitCode(); got != cli.ExitFailure {
		t.Errorf("exit code %d, want %d, that of an orderly end", got, cli.ExitFailure)
	}
}

// built returns the consumer binary that the tests were given, or builds one.
func built(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("STANDINGS_TEST_CONSUMER"); path != "" {
		return path
	}
	binary := filepath.Join(t.TempDir(), "consumer")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// refused starts a process that publishes to a broker that rejects everything, so that a graceful end takes
// the whole shutdown timeout.
func refused(t *testing.T, binary, shutdownTimeout string) *exec.Cmd {
	t.Helper()
	c, environ := clitest.FakeKafka(t)
	refusing := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	t.Cleanup(cancel)
	p := exec.CommandContext(ctx, binary, "produce", "--count", "1")
	p.Env = append(environ, "STANDINGS_SHUTDOWN_TIMEOUT="+shutdownTimeout)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := refusing.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	return p
}
