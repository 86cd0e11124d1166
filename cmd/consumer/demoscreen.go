package main

// The demo's screen: drawn in place on a terminal, lines elsewhere.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
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

// showDemo shows the game until ctx ends. The terminal is as it was before when it
// returns, whatever comes after.
func showDemo(ctx context.Context, p *cli.Program, f *demoFlags, stage *demoStage, game *demoGame) error {
	watch, err := newDemoWatch(stage.cfg, game)
	if err != nil {
		return err
	}
	defer watch.close()
	if _, ok := terminal.Width(p.Stdout); !ok || f.plain {
		return demoLines(ctx, p, stage, watch)
	}
	file := p.Stdout.(*os.File)
	if _, err := io.WriteString(file, screenEnter); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(file, screenLeave) }()
	tick := time.NewTicker(demoEvery)
	defer tick.Stop()
	for {
		watch.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			width, height = 80, 24
		}
		lines := (&demoFrame{watch: watch, stage: stage, width: width, height: height}).lines()
		if _, err := io.WriteString(file, screenHome+strings.Join(lines, lineEnd+"\n")+lineEnd+screenEnd); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

const demoLinesEvery = 2 * time.Second

// demoLines is the demo in a log: what to try once, then the figures.
func demoLines(ctx context.Context, p *cli.Program, stage *demoStage, watch *demoWatch) error {
	fmt.Fprintf(p.Stdout, "%s\n%s\nthe consumer's log: %s\n",
		stage.title(clock(0)), strings.Join(stage.environment(), "\n"), stage.logPath())
	for _, hint := range (&demoFrame{watch: watch, stage: stage}).hints() {
		fmt.Fprintln(p.Stdout, hint)
	}
	watch.look(ctx)
	tick := time.NewTicker(demoLinesEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		watch.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		counts := watch.counts()
		line := fmt.Sprintf("%ds   %s   %s", int(time.Since(watch.begun).Seconds()), counts[0], counts[1])
		for _, b := range watch.last().boards {
			if len(b.Standings) > 0 {
				line += fmt.Sprintf("   %s %s %s %s", demoBoards[0], b.Window.Name, terminal.Plain(b.Standings[0].Member), units.Thousands(b.Standings[0].Points))
			}
		}
		if trouble := watch.last().trouble; trouble != "" {
			line += "   " + trouble
		}
		if _, err := fmt.Fprintln(p.Stdout, line); err != nil {
			return err
		}
	}
}

// title says what runs where, and for how long.
func (s *demoStage) title(ran string) string {
	return fmt.Sprintf("standings demo  %s  Kafka %s  %s %s", ran, strings.Join(s.cfg.Kafka.Brokers, ","), s.redis.Name, s.redis.Address)
}

// self is how this program is called from the same directory.
func self() string {
	path, err := os.Executable()
	if err != nil || strings.Contains(path, string(filepath.Separator)+"go-build") {
		return "go run ./cmd/consumer"
	}
	name := filepath.Base(path)
	if found, err := exec.LookPath(name); err == nil && found == path {
		return name
	}
	if wd, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(wd, path); err == nil && !strings.HasPrefix(short, "..") {
			return "." + string(filepath.Separator) + short
		}
	}
	return path
}
