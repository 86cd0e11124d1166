package main

// A frame of the demo: lines that fit a width and a height.

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

type demoFrame struct {
	watch         *demoWatch
	stage         *demoStage
	width, height int
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// lines never are more than the height, or wider than the width. What there is
// room for goes by what matters: figures, boards, then what to try.
func (f *demoFrame) lines() []string {
	head := []string{f.line(bold, f.stage.title(clock(time.Since(f.watch.begun))))}
	figures := f.figures()
	hints := f.hints()
	room := f.height - len(head) - len(figures)
	rows := min(demoRows, max(1, room-1))
	room -= rows + 1
	// From here on lines are worth what they separate or say.
	all := head
	gap := func(needed int) {
		if room > needed {
			all = append(all, "")
			room--
		}
	}
	gap(len(hints))
	all = append(all, f.boards(rows)...)
	gap(len(hints))
	all = append(all, figures...)
	gap(len(hints))
	for i := 0; i < len(hints) && room > 0; i++ {
		all = append(all, f.line("", hints[i]))
		room--
	}
	return all[:min(len(all), f.height)]
}

// line fits a plain text into the width.
func (f *demoFrame) line(style, text string) string {
	if text = terminal.Cut(text, f.width); style != "" {
		return style + text + reset
	}
	return text
}

func (f *demoFrame) figures() []string {
	counts := f.watch.counts()
	lines := []string{f.line("", counts[0]), f.line("", counts[1]), f.line("", "its log: "+f.stage.logPath())}
	if trouble := f.watch.last().trouble; trouble != "" {
		lines = append(lines, f.line(red, trouble))
	}
	return lines
}

const (
	boardGap      = 3
	narrowestName = 6
	widestBoard   = 40
)

// boards are side by side: a head and rows each. Where not all fit, the first do.
func (f *demoFrame) boards(rows int) []string {
	boards := f.watch.last().boards
	if len(boards) == 0 {
		return append([]string{"waiting for the first standings"}, make([]string, rows)...)
	}
	const figures = len("10 ^ ") + len("  99,999,999")
	n := min(len(boards), max(1, (f.width+boardGap)/(figures+narrowestName+boardGap)))
	width := min(widestBoard, (f.width-boardGap*(n-1))/n)
	lines := make([]string, rows+1)
	for i, b := range boards[:n] {
		cells := f.board(b, rows, width)
		for j := range lines {
			if i > 0 {
				lines[j] += strings.Repeat(" ", boardGap)
			}
			lines[j] += cells[j]
		}
	}
	return lines
}

// board is a column of cells, all of that width.
func (f *demoFrame) board(b ranking.Board, rows, width int) []string {
	head := fmt.Sprintf("%s %s", b.Window.Period, b.Window.Name)
	if named := demoBoards[0] + " " + head; len(named) <= width {
		head = named
	}
	if width >= 34 {
		head += "   " + units.Plural(b.Members, "member")
	}
	cells := []string{bold + pad(terminal.Cut(head, width), width) + reset}
	for i := range rows {
		if i >= len(b.Standings) {
			cells = append(cells, strings.Repeat(" ", width))
			continue
		}
		st := b.Standings[i]
		mark, style := " ", ""
		switch moved := f.watch.moved(b.Window.Period, st); {
		case moved > 0:
			mark, style = "▲", green
		case moved < 0:
			mark, style = "▼", red
		}
		points := units.Thousands(st.Points)
		room := max(1, width-len("10 ^ ")-len(points)-1)
		name := pad(terminal.Cut(terminal.Plain(st.Member), room), room)
		cells = append(cells, fmt.Sprintf("%2d %s%s%s %s %s", st.Rank, style, mark, reset, name, points))
	}
	return cells
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

// clock writes a duration as 1:02:03 or 2:03.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// example is a member to look up and the current week: both of them real.
func (f *demoFrame) example() (member, week string) {
	if len(f.watch.past) > 0 {
		for _, b := range f.watch.last().boards {
			if b.Window.Period == config.DefaultPeriods[0] && len(b.Standings) > 0 {
				return b.Standings[len(b.Standings)/2].Member, b.Window.Name
			}
		}
	}
	w, err := f.watch.reader.Calendar.At(config.DefaultPeriods[0], time.Now().UnixMilli())
	if err != nil {
		return f.watch.game.someone, "2026-W47" // no clock says so
	}
	return f.watch.game.someone, w.Name
}

// hints are commands that can be pasted as they stand.
func (f *demoFrame) hints() []string {
	member, window := f.example()
	_, port, _ := net.SplitHostPort(f.stage.redis.Address)
	me := self()
	return []string{
		"In another terminal (Ctrl-C here ends it all):",
		"  . " + f.stage.environmentPath() + "   # where the servers are",
		"  " + me + " top eu monthly --window previous",
		"  " + me + " rank global weekly " + terminal.Plain(member) + " --around 2",
		"  " + me + " status",
		"  " + me + " dead-letters list   # one event in a hundred is bad on purpose",
		"  redis-cli -p " + port + " ZREVRANGE 'lb:{0}:global:weekly:" + window + "' 0 4 WITHSCORES",
		"  " + me + " produce --rate 20000 --duration 10s --spread 45d",
		"  " + me + " run            # a second replica takes half",
	}
}
