package demo

// The demo's screen: drawn in place on a terminal, lines elsewhere.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/cmd/consumer/terminal"
)

// Escape sequences that every terminal since the VT100 knows, and xterm's for the
// alternate screen.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
	screenLeave = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineEnd     = "\x1b[K"
	screenEnd   = "\x1b[J"
)

// show shows the game until ctx ends. The terminal is as it was before when it
// returns, whatever comes after.
func show(ctx context.Context, p *cli.Program, f *flags, stage *servers, game *players) error {
	watch, err := newWatcher(ctx, stage.cfg, game)
	if err != nil {
		return err
	}
	defer watch.close()
	watch.look(ctx)
	every, draw := linesEvery, func() error { return writeLine(p.Stdout, watch) }
	if _, ok := terminal.Width(p.Stdout); ok && !f.plain {
		if _, err := io.WriteString(p.Stdout, screenEnter); err != nil {
			return err
		}
		defer func() { _, _ = io.WriteString(p.Stdout, screenLeave) }()
		every, draw = lookEvery, func() error { return drawScreen(p.Stdout.(*os.File), &frame{watch: watch, stage: stage}) }
	} else {
		fmt.Fprintf(p.Stdout, "%s\n%s\nthe consumer's log: %s\n%s\n", stage.title(0), strings.Join(stage.environment(), "\n"), stage.logPath(),
			strings.Join((&frame{watch: watch, stage: stage}).hints(), "\n"))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := draw(); err != nil {
			return err
		}
		select {
		case <-tick.C:
			watch.look(ctx)
		case <-ctx.Done():
		}
	}
	return nil
}

func drawScreen(file *os.File, f *frame) error {
	var err error
	if f.width, f.height, err = term.GetSize(int(file.Fd())); err != nil || f.width <= 0 || f.height <= 0 {
		f.width, f.height = 80, 24
	}
	_, err = io.WriteString(file, screenHome+strings.Join(f.lines(), lineEnd+"\n")+lineEnd+screenEnd)
	return err
}

const linesEvery = 2 * time.Second

// writeLine is the demo in a log: the figures, and who leads.
func writeLine(w io.Writer, watch *watcher) error {
	counts := watch.counts()
	line := fmt.Sprintf("%ds   %s   %s", int(time.Since(watch.begun).Seconds()), counts[0], counts[1])
	for _, b := range watch.last().boards {
		if len(b.Standings) > 0 {
			line += fmt.Sprintf("   %s %s %s %s", b.Name, b.Window.Name, terminal.Plain(b.Standings[0].Member), fields.Text(b.Fields, b.Standings[0].Tuple, b.Standings[0].Points))
		}
	}
	if trouble := watch.last().trouble; trouble != "" {
		line += "   " + trouble
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// title says what runs where, and for how long.
func (s *servers) title(ran time.Duration) string {
	return fmt.Sprintf("standings demo  %s  Kafka %s  %s %s", ran.Truncate(time.Second), strings.Join(s.cfg.Kafka.Brokers, ","), s.redis.Name, s.redis.Address)
}

// self is how this program was called.
func self() string {
	if strings.Contains(os.Args[0], string(os.PathSeparator)+"go-build") {
		return "go run ./cmd/consumer"
	}
	return os.Args[0]
}
