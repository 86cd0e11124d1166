package top

// This file draws a watched board in place on a terminal.

import (
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// drawing holds the known facts about a board, to draw it.
type drawing struct {
	title    string // shown until the board is known
	page     *pageFlags
	zone     *time.Location
	coloured bool

	last    *look // the last reading that found the board
	moves   boardview.Moves
	trouble string        // the error of a later reading; empty if there is none
	waited  time.Duration // since the last request
}

// take stores the result of a reading; nil if there is no new one.
func (d *drawing) take(l *look, waited time.Duration) {
	d.waited = waited
	switch {
	case l == nil:
	case l.err != nil:
		d.trouble = l.err.Error()
	default:
		d.last, d.trouble = l, ""
		d.moves.Add(l.at, &l.board.Board)
	}
}

// leastRows is the number of rows that are shown even if notes must be cut for them.
const leastRows = 3

// lines returns the lines that fit: the board's title and state, rows, and notes.
func (d *drawing) lines(width, height int) []string {
	below := d.below(width)
	if d.last == nil {
		head := terminal.Styled(terminal.Bold, terminal.Cut(d.title, width))
		return terminal.Fit(append([]string{head}, below...), width, height)
	}
	b := d.last.board
	top := []string{
		terminal.Styled(terminal.Bold, terminal.Harmless(boardview.Title(&b.Board, d.zone, width))),
		d.state(width),
	}
	room := height - len(top)
	var table []string
	if n := len(b.Standings); n > 0 && room > 1 {
		below = terminal.Fit(below, width, max(1, room-1-min(n, leastRows)))
		layout := boardview.Layout{Width: width, Headings: true, Zone: d.zone, Mark: d.moves.Mark, Coloured: d.coloured}
		shown := b.Board
		shown.Standings = shown.Standings[:min(n, room-1-min(len(below), room-1))]
		table = layout.Rows(&shown)
	}
	return terminal.Stack([][]string{top, table, below}, width, height)
}

// below returns the notes below the rows, trouble first.
func (d *drawing) below(width int) (lines []string) {
	switch {
	case d.trouble != "":
		for _, line := range terminal.Wrapped(d.trouble, width) {
			lines = append(lines, terminal.Red.In(line, d.coloured))
		}
	case d.waited >= time.Second:
		lines = append(lines, terminal.Yellow.In(terminal.Cut("no answer from Redis for "+seconds(d.waited), width), d.coloured))
	}
	if d.last == nil {
		return lines
	}
	for _, note := range append(d.last.board.notes(), d.last.missing, d.page.none(d.last.board)) {
		if note != "" {
			lines = append(lines, terminal.Wrapped(note, width)...)
		}
	}
	return lines
}

var stateColours = map[string]terminal.Colour{
	reading.Whole: terminal.Green, reading.Incomplete: terminal.Yellow, reading.Behind: terminal.Yellow, reading.Refilling: terminal.Yellow, reading.Lost: terminal.Red,
}

// state returns the board's state and the time left in its window. While the board cannot be read, it shows
// the last known state and its age.
func (d *drawing) state(width int) string {
	since := time.Since(d.last.at)
	word := d.last.board.State()
	state, colour := strings.ReplaceAll(word, "_", " "), stateColours[word]
	if d.trouble != "" || d.waited >= time.Second {
		state, colour = fmt.Sprintf("was %s %s ago", state, seconds(since)), terminal.Yellow
	}
	now := d.last.at // an empty Redis reports no time with the board
	if by := d.last.board.Beside.Now; !by.IsZero() {
		now = by
	}
	left := timeLeft(d.last.board.Window, now.Add(since))
	if line := state + left; len(line) > width {
		return terminal.Cut(line, width)
	}
	return colour.In(state, d.coloured) + left
}

// timeLeft returns how long a window still lasts; empty if it never ends.
func timeLeft(w periods.Window, now time.Time) string {
	begins, left := time.UnixMilli(w.Start).Sub(now), time.UnixMilli(w.End).Sub(now)
	switch {
	case begins > 0:
		return ", begins in " + seconds(begins)
	case w.End >= periods.MaxTime:
		return ""
	case left > 0:
		return ", ends in " + seconds(left)
	}
	return ", ended " + seconds(-left) + " ago"
}

// seconds formats a duration in whole seconds, as short as possible.
func seconds(d time.Duration) string {
	if d = d.Truncate(time.Second); d < time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return units.ShortDuration(d)
}
