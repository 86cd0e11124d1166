package status

// This file draws the status in place on a terminal.

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/standings/standings/internal/terminal"
)

// drawing holds the last report for drawing.
type drawing struct {
	last     *look
	waited   time.Duration // since the last request
	coloured bool
}

// lines returns the lines that fit. If room is short, problems come before the tables.
func (d *drawing) lines(width, height int) []string {
	var parts [][]string
	if late := d.late(); late != "" {
		parts = append(parts, []string{terminal.Yellow.In(terminal.Cut(late, width), d.coloured)})
	}
	if d.last == nil {
		return terminal.Fit(slices.Concat(parts...), width, height)
	}
	blocks := d.last.report.blocks()
	rest := blocks[1:]
	var problems []string
	for _, problem := range d.last.report.Problems {
		for _, line := range terminal.Wrapped(problem, width) {
			problems = append(problems, terminal.Red.In(line, d.coloured))
		}
	}
	head := d.fitted(blocks[0], width)
	parts = append([][]string{head}, append(parts, problems)...)
	spaced := terminal.Stack(append(slices.Clone(parts), d.all(rest, width)...), width, math.MaxInt)
	if len(spaced) <= height {
		return spaced
	}
	slices.SortStableFunc(rest, func(a, b block) int {
		switch {
		case a.table == b.table:
			return 0
		case b.table:
			return -1
		}
		return 1
	})
	return terminal.Fit(slices.Concat(append(parts, d.all(rest, width)...)...), width, height)
}

// late reports that a reading takes long, and how old the shown report is.
func (d *drawing) late() string {
	switch {
	case d.waited < time.Second:
		return ""
	case d.last == nil:
		return fmt.Sprintf("no reply for %s", d.waited.Truncate(time.Second))
	}
	return fmt.Sprintf("no reply for %s: the following is %s old", d.waited.Truncate(time.Second), time.Since(d.last.at).Truncate(time.Second))
}

func (d *drawing) all(blocks []block, width int) (parts [][]string) {
	for _, b := range blocks {
		parts = append(parts, d.fitted(b, width))
	}
	return parts
}

// fitted fits a block's lines into a width: it cuts the lines of tables and wraps others.
func (d *drawing) fitted(b block, width int) (lines []string) {
	for _, line := range b.lines {
		if b.table {
			lines = append(lines, terminal.Cut(terminal.Harmless(line), width))
		} else {
			lines = append(lines, terminal.Wrapped(line, width)...)
		}
	}
	if d.coloured {
		for i, line := range lines {
			lines[i] = terminal.Coloured(line, colours)
		}
	}
	return lines
}
