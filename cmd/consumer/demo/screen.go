package demo

// This file shows the demo: as a screen drawn in place on a terminal, otherwise as lines.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/terminal"
)

// show shows the game until ctx ends. It restores the terminal before it returns, also after an error.
func show(ctx context.Context, p *cli.Program, f *flags, stage *servers, game *players) error {
	watch, err := newWatcher(ctx, stage.cfg, game)
	if err != nil {
		return err
	}
	defer watch.close()
	first := watch.look(ctx)
	watch.take(&first)
	every, draw := linesEvery, func() error { return writeLine(p.Stdout, watch) }
	if p.DrawsInPlace(p.Stdout) && !f.plain {
		screen, err := terminal.EnterScreen(p.Stdout)
		if err != nil {
			return err
		}
		defer screen.Leave()
		coloured := p.Colours(p.Stdout)
		every, draw = lookEvery, func() error {
			return screen.Draw(func(width, height int) []string {
				return (&frame{watch: watch, stage: stage, width: width, height: height, coloured: coloured}).lines()
			})
		}
	} else {
		fmt.Fprintf(p.Stdout, "%s\n%s\nthe consumer's log: %s\n%s\n", stage.title(0), strings.Join(stage.environment(), "\n"), stage.logPath(),
			strings.Join((&frame{watch: watch, stage: stage}).hints(), "\n"))
	}
	return terminal.Watch(ctx, every, watch.look, func(found *view, _ time.Duration) error {
		if found == nil {
			return nil
		}
		watch.take(found)
		return draw()
	})
}

const linesEvery = 2 * time.Second

// writeLine writes the demo's state as one line: the figures and the leaders.
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

// title returns the demo's title: how long it has run, and the addresses of its servers.
func (s *servers) title(ran time.Duration) string {
	return fmt.Sprintf("standings demo  %s  Kafka %s  %s %s", ran.Truncate(time.Second), strings.Join(s.cfg.Kafka.Brokers, ","), s.redis.Name, s.redis.Address)
}

// self returns the command that started this program.
func self() string {
	if strings.Contains(os.Args[0], string(os.PathSeparator)+"go-build") {
		return "go run ./cmd/consumer"
	}
	return os.Args[0]
}
