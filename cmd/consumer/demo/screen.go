package demo

// This file shows the demo: as a screen drawn in place on a terminal, otherwise as lines.

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/fields"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
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

// frame draws the screen as lines that fit a width and a height.
type frame struct {
	watch         *watcher
	stage         *servers
	width, height int
	coloured      bool
}

// lines returns at most height lines of at most width columns. If room is short, it first drops the space
// between the parts and then the hints, and keeps the boards and figures.
func (f *frame) lines() []string {
	figures := f.figures()
	rows := min(mostRows, max(1, f.height-len(figures)-2))
	var hints []string
	for _, hint := range f.hints() {
		hints = append(hints, f.line("", hint))
	}
	hints = hints[:min(len(hints), max(0, f.height-len(figures)-rows-2))]
	parts := [][]string{{f.line(terminal.Bold, f.stage.title(time.Since(f.watch.begun)))}, f.boards(rows), figures, hints}
	return terminal.Stack(parts, f.width, f.height)
}

// line cuts a plain text to the width.
func (f *frame) line(style, text string) string {
	return terminal.Styled(style, terminal.Cut(text, f.width))
}

func (f *frame) figures() []string {
	counts := f.watch.counts()
	lines := []string{f.line("", counts[0]), f.line("", counts[1]), f.line("", "its log: "+f.stage.logPath())}
	if trouble := f.watch.last().trouble; trouble != "" {
		lines = append(lines, terminal.Red.In(f.line("", trouble), f.coloured))
	}
	return lines
}

const (
	boardGap      = 3
	narrowestName = 6
	widestBoard   = 40
)

// boards arranges the boards side by side, each with a title and rows. If not all fit, it shows the first
// ones.
func (f *frame) boards(rows int) []string {
	boards := f.watch.last().boards
	if len(boards) == 0 {
		return append([]string{"waiting for the first standings"}, make([]string, rows)...)
	}
	const figures = len("10 ^ ") + len("  99,999,999")
	n := min(len(boards), max(1, (f.width+boardGap)/(figures+narrowestName+boardGap)))
	width := min(widestBoard, (f.width-boardGap*(n-1))/n)
	var columns [][]string
	for i, b := range boards[:n] {
		b.Standings = b.Standings[:min(rows, len(b.Standings))]
		layout := boardview.Layout{Width: width, Zone: time.UTC, Mark: f.watch.moves[i].Mark, Coloured: f.coloured}
		title := terminal.Styled(terminal.Bold, boardTitle(&b, width))
		columns = append(columns, append([]string{title}, layout.Rows(&b)...))
	}
	lines := boardview.Beside(columns, width, boardGap)
	return append(lines, make([]string, rows+1-len(lines))...)
}

// boardTitle adds the names of the board's fields to the title.
func boardTitle(b *ranking.Board, width int) string {
	var fields []string
	for _, field := range b.Fields.List() {
		fields = append(fields, field.Name)
	}
	names := strings.Join(fields, "/")
	return terminal.Cut(strings.TrimSpace(boardview.Title(b, time.UTC, max(1, width-len(names)-1))+" "+names), width)
}

// example returns an existing member and the current week, for the hints.
func (f *frame) example() (member, week string) {
	for _, b := range f.watch.last().boards {
		if b.Name == boardNames[0] && b.Window.Period == config.DefaultPeriods[0] && len(b.Standings) > 0 {
			return b.Standings[len(b.Standings)/2].Member, b.Window.Name
		}
	}
	w, _ := f.watch.reader.Calendar.At(config.DefaultPeriods[0], time.Now().UnixMilli()) // every instant is in a week
	return f.watch.game.someone, w.Name
}

// hints returns commands that can be pasted unchanged.
func (f *frame) hints() []string {
	member, window := f.example()
	_, port, _ := net.SplitHostPort(f.stage.redis.Address)
	me := self()
	all := []string{
		"In a browser: " + f.stage.page + "   In another terminal (Ctrl-C ends all):",
		"  . " + f.stage.environmentPath() + "   # where the servers are",
		"  " + me + " top eu monthly --window previous",
		"  " + me + " rank global weekly " + terminal.Plain(member) + " --around 2",
		"  " + me + " status",
		"  " + me + " dead-letters list   # one event in a hundred is bad on purpose",
		"  " + me + " produce --rate 20000 --duration 10s",
		"  " + me + " run            # a second replica takes half",
		"  " + me + " top " + arena + " " + arenaPeriod + "   # a board of two fields",
	}
	if f.stage.cfg.Redis.Shards == 1 { // with several shards no single key holds a board
		all = slices.Insert(all, 6, "  redis-cli -p "+port+" ZREVRANGE 'lb:{0}:global:weekly:"+window+"' 0 4 WITHSCORES")
	}
	return all
}
