package top

// This file repeats a board: in place on a terminal, otherwise after each change.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/boardview"
	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// watch shows a board again and again. The title is shown until the board is known.
func watch(p *cli.Program, f *flags, title string, read func(context.Context) (*board, error)) *cli.Watch[board] {
	d := &drawing{title: title}
	return &cli.Watch[board]{
		Read: read,
		Ends: ends,
		Document: func(b *board) (document, matters any) {
			r := reportOf(b, f.shards)
			return r, whatMatters(r, f.asJSON)
		},
		Text:  func(b *board) error { return write(p.Stdout, b, b.watchedNotes()) },
		Lines: d.lines,
	}
}

// ends reports whether later readings cannot succeed. The schema that a reshard left behind is no reason: in
// a cluster, the new number of shards, which leads to the new ones, may become visible a moment later.
func ends(err error) bool {
	other, ok := errors.AsType[*ranking.SchemaError](err)
	return errors.Is(err, cli.ErrUsage) || ok && ranking.LeftFor(other.Found) == 0
}

// watchedNotes returns the notes, and why the board is lost or does not exist, which is no error here.
func (b *board) watchedNotes() []string {
	all := b.notes()
	for _, err := range []error{b.lost(), b.absent()} {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}

// whatMatters returns a report without the values that change merely with time. The text output does not
// show the lag of a board that is not behind.
func whatMatters(r report, asJSON bool) report {
	r.ReportedAt, r.BehindMS = nil, nil
	if r.State != reading.StateBackup && r.State != reading.StateArchived {
		r.AsOf = nil
	}
	if !asJSON && r.State != reading.StateLagging && r.State != reading.StateStalled {
		r.Lag = nil
	}
	r.Shards = slices.Clone(r.Shards)
	for i := range r.Shards {
		r.Shards[i].AsOf = ""
	}
	return r
}

// drawing draws a watched board in place.
type drawing struct {
	title string
	drawn *board // the last one in moves
	moves boardview.Moves
}

// leastRows is the number of rows that are shown even if notes must be cut for them.
const leastRows = 3

// lines returns the lines that fit: the board's title and state, rows, and notes.
func (d *drawing) lines(s *cli.Shown[board], width, height int) []string {
	below := s.Trouble(width)
	b := s.Last
	if b == nil {
		head := terminal.Styled(terminal.Bold, terminal.Cut(d.title, width))
		return terminal.Fit(append([]string{head}, below...), width, height)
	}
	if b != d.drawn {
		d.drawn = b
		d.moves.Add(s.At, &b.Board)
	}
	for _, note := range b.watchedNotes() {
		below = append(below, terminal.Wrapped(note, width)...)
	}
	top := []string{
		terminal.Styled(terminal.Bold, terminal.Harmless(boardview.Title(&b.Board, b.zone(), width))),
		stateLine(s, width),
	}
	room := height - len(top)
	var table []string
	if n := len(b.Standings); n > 0 && room > 1 {
		below = terminal.Fit(below, width, max(1, room-1-min(n, leastRows)))
		layout := boardview.Layout{Width: width, Headings: true, Zone: b.zone(), Mark: d.moves.Mark, Coloured: s.Coloured}
		shown := b.Board
		shown.Standings = shown.Standings[:min(n, room-1-min(len(below), room-1))]
		table = layout.Rows(&shown)
	}
	return terminal.Stack([][]string{top, table, below}, width, height)
}

var stateColours = map[string]terminal.Colour{
	reading.StateCurrent: terminal.Green, reading.StateArchived: terminal.Green, reading.StateRefilling: terminal.Yellow,
	reading.StateIncomplete: terminal.Yellow, reading.StateLagging: terminal.Yellow, reading.StateStalled: terminal.Yellow,
	reading.StateLost: terminal.Red,
}

// stateLine returns the board's state and the time left in its window. While the board cannot be read, it
// shows the last known state and its age.
func stateLine(s *cli.Shown[board], width int) string {
	since := time.Since(s.At)
	word := s.Last.State()
	state, colour := strings.ReplaceAll(word, "_", " "), stateColours[word]
	if s.Old() {
		state, colour = fmt.Sprintf("was %s %s ago", state, seconds(since)), terminal.Yellow
	}
	now := s.At // an empty Redis reports no time with the board
	if by := s.Last.Beside.Now; !by.IsZero() {
		now = by
	}
	left := timeLeft(s.Last.Window, now.Add(since))
	if line := state + left; len(line) > width {
		return terminal.Cut(line, width)
	}
	return colour.In(state, s.Coloured) + left
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
