package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// watching is top --watch on a terminal.
type watching struct {
	*clitest.Terminal
	interrupt context.CancelFunc
	ended     chan int
}

func watchOn(t *testing.T, environ []string, args ...string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{clitest.OpenTerminal(t, 80, 24), cancel, make(chan int, 1)}
	t.Cleanup(func() {
		cancel()
		<-w.ended
	})
	go func() {
		defer close(w.ended)
		p := &cli.Program{Environ: environ, Stdout: w.TTY, Stderr: io.Discard}
		w.ended <- p.Run(ctx, p.Root("unknown", Command(p)), append([]string{"top", "--watch", "--every", "100ms"}, args...))
	}()
	return w
}

// shows waits until all texts are on the screen.
func (w *watching) shows(t *testing.T, all ...string) string {
	t.Helper()
	return w.Await(t, fmt.Sprintf("%q", all), func(screen string) bool {
		for _, text := range all {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// leaves waits until the command has ended and has restored the terminal.
func (w *watching) leaves(t *testing.T) {
	t.Helper()
	if code := <-w.ended; code != 0 {
		t.Errorf("code %d", code)
	}
	w.Await(t, "what was there before", func(string) bool { return strings.HasSuffix(w.Written(), "\x1b[?7h\x1b[?25h\x1b[?1049l") })
}

func TestAWatchedBoardIsDrawnInPlace(t *testing.T) {
	b := aBoard(t)
	w := watchOn(t, b.Environ, "global", "weekly", "--window", clitest.Window)
	w.shows(t, "global weekly 2100-W10  [2100-03-08 00:00, 2100-03-15 00:00) UTC  4 members\ncurrent, begins in ",
		"\n\nRANK  MEMBER     POINTS  REACHED AT\n   1  Kalobi  1,234,567  2100-03-09 08:15:30.12\n   2  Nebude         99  2100-03-10 00:00:00.40\n   3  Tanubo ")
	b.Add(t, "global", clitest.Member("Tanubo", 1, "2100-03-11T00:00:00Z"), clitest.Member("\x1b]0;evil\a", 3, "2100-03-11T00:00:00Z"))
	w.shows(t, " ▲ 2  Tanubo ", " ▼ 3  Nebude ", " ▲ 4  \\x1b]0;evil\\x07 ", "  5 members\n")
	w.shows(t, "   2  Tanubo ", "   3  Nebude ") // a move is shown for a while

	w.Resize(t, 30, 6)
	w.Await(t, "a narrow board", func(screen string) bool {
		return strings.HasPrefix(screen, "global weekly 2100-W10\ncurrent, begins in ") && strings.Count(screen, "\n") == 5 && !strings.Contains(screen, "REACHED")
	})

	w.interrupt()
	w.leaves(t)
	if written := w.Written(); strings.Count(written, "\x1b[?1049h") != 1 || !strings.Contains(written, "\x1b[32m▲\x1b[0m") || !strings.Contains(written, "\x1b[31m▼\x1b[0m") || strings.Contains(written, "\x1b]") {
		t.Errorf("%q", written)
	}
}

func TestATerminalHasNoColoursThatAreNotWanted(t *testing.T) {
	b := aBoard(t)
	for setting, inPlace := range map[string]bool{"NO_COLOR=1": true, "TERM=dumb": false} {
		w := watchOn(t, append([]string{setting}, b.Environ...), "global", "weekly", "--window", clitest.Window)
		w.Await(t, "the board", func(string) bool { return strings.Contains(w.Written(), "Viboli") })
		if written := w.Written(); strings.Contains(written, "\x1b[3") || strings.Contains(written, "\x1b[H") != inPlace || strings.Contains(written, "\x1b") != inPlace {
			t.Errorf("%s: %q", setting, written)
		}
		w.interrupt()
		if code := <-w.ended; code != 0 {
			t.Errorf("%s: code %d", setting, code)
		}
	}
}

// standIn returns a Redis that the test can stop, with a clock that the test sets.
func standIn(t *testing.T) (*miniredis.Miniredis, *written) {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.SetTime(time.Date(2100, 3, 14, 23, 59, 0, 0, time.UTC))
	s := clitest.StandingsAt(t, mini.Addr(), testenv.Prefix(t), 1, 0)
	s.Environ = append(s.Environ, "STANDINGS_REDIS_TIMEOUT=1s")
	w := newWritten(t, s)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""), clitest.Member("Tanubo", 4, ""))
	return mini, w
}

func TestOnceTheCurrentWindowEndsTheNextOneIsShown(t *testing.T) {
	mini, b := standIn(t)
	w := watchOn(t, b.Environ, "global", "weekly")
	w.shows(t, "2100-W10", ", ends in ", "   1  Kalobi", "   2  Tanubo")
	mini.SetTime(time.Date(2100, 3, 15, 0, 0, 0, 0, time.UTC))
	w.shows(t, "2100-W11", "ends in 6d23h", "no event has been counted in global weekly 2100-W11")
	b.AddTo(t, "2100-W11", "global", clitest.Member("Tanubo", 7, ""))
	if screen := w.shows(t, "2100-W11", "   1  Tanubo"); strings.Contains(screen, "Kalobi") || strings.Contains(screen, "no event has been counted") {
		t.Error(screen)
	}
}

func TestWhileRedisIsAwayTheLastRowsStayAndALineSaysSo(t *testing.T) {
	mini, b := standIn(t)
	w := watchOn(t, b.Environ, "global", "weekly")
	w.shows(t, "current, ends in ", "   1  Kalobi")
	address := mini.Addr()
	mini.Close()
	if screen := w.shows(t, "was current ", "can't connect to Redis at "+address); !strings.Contains(screen, "   1  Kalobi") || strings.Contains(screen, "\ncurrent") {
		t.Error(screen)
	}
	require.NoError(t, mini.Restart())
	b.Add(t, "global", clitest.Member("Tanubo", 4, ""))
	if screen := w.shows(t, " ▲ 1  Tanubo", "\ncurrent, ends in "); strings.Contains(screen, "can't connect") {
		t.Error(screen)
	}
}

func TestAReshardIsFollowed(t *testing.T) {
	before := inShards(t, 1)
	w := watchOn(t, before.Environ, "global", "weekly", "--window", clitest.Window)
	w.shows(t, "30 members", "   1  m29")
	prefix := before.Reader.Config.Redis.Prefix
	after := clitest.StandingsAt(t, testenv.Redis(t).Addr(), prefix, 3, 0)
	after.Add(t, "global", clitest.Member("m7", 900, ""), clitest.Member("m3", 800, ""))
	require.NoError(t, after.Reader.Client.Set(t.Context(), ranking.NumberKey(prefix), "3", 0).Err())
	if err := after.Reader.Client.Set(t.Context(), before.Store.Keys().Schema(), ranking.LeftMark(ledger.Shards(3)), 0).Err(); err != nil {
		t.Fatal(err)
	}
	w.shows(t, "2 members", " ▲ 1  m7", " ▲ 2  m3")
}
