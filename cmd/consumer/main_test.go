package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "consumer")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		c, environ := fakeKafka(t)
		// A broker that takes nothing: an orderly end lasts a minute.
		refusing := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		p := exec.CommandContext(ctx, binary, "produce", "--count", "1")
		p.Env = append(environ, "STANDINGS_SHUTDOWN_TIMEOUT=1m")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if err := refusing.Wait(ctx, 1); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = p.Wait() // the exit code is looked at below
			close(ended)
		}()
		// Two signals of a kind that arrive together are one: go on until the end.
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for running := true; running; {
			select {
			case <-ended:
				running = false
			case <-again.C:
				_ = p.Process.Signal(signal)
			}
		}
		if got := p.ProcessState.ExitCode(); got != want {
			t.Errorf("after two of %v: exit code %d, want %d", signal, got, want)
		}
	}
}
