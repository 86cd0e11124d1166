package status

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/test/clitest"
)

func TestWatchedStatusIsDrawnInPlace(t *testing.T) {
	w, environ, kafka := aHalt(t)
	x := clitest.OpenTerminal(t, 120, 24)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan int, 1)
	go func() {
		p := &cli.Program{Environ: environ, Stdout: x.TTY, Stderr: io.Discard}
		ended <- p.Run(ctx, p.Root("unknown", Command(p)), []string{"status", "--watch", "--every", "100ms"})
	}()
	x.Await(t, "a halt", func(screen string) bool {
		return strings.HasPrefix(screen, "group standings, prefix ") && strings.Contains(screen, "2 partitions, 1 running, 1 halted") &&
			strings.Contains(screen, "points/1 halted (gap): events are gone\n  to do: restore them") && strings.Contains(screen, "can't connect to Kafka at "+kafka)
	})
	w.Reports(t, 1, workers.Line{Owner: "me:1", State: workers.StateRunning})
	x.Await(t, "that it runs", func(screen string) bool {
		return strings.Contains(screen, "2 partitions, 2 running") && !strings.Contains(screen, "restore them")
	})
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("code %d", code)
	}
	x.Await(t, "what was there before", func(string) bool { return strings.HasSuffix(x.Written(), "\x1b[?1049l") })
	if !strings.Contains(x.Written(), "\x1b[31mhalted\x1b[0m") {
		t.Errorf("%q", x.Written())
	}
}
