package top

// This file writes a watched board without a terminal, again after each change.

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/terminal"
)

// writer writes the results of readings.
type writer struct {
	changes cli.Changes
	page    *pageFlags
	zone    string
	trouble string // as last reported; empty if there is none
}

func (w *writer) show(l *look, _ time.Duration) error {
	switch {
	case l == nil:
		return nil
	case l.ends():
		return l.err
	}
	if w.report(l.err); l.board == nil {
		return nil
	}
	r := reportOf(l.board, w.zone, w.page.shards)
	return w.changes.Write(r, whatMatters(r, w.page.asJSON), func() error {
		return newText(w.changes.Program.Stdout, w.zone).write(l.board, l.missing+w.page.none(l.board)) // at most one of the two is set
	})
}

// report reports on stderr, once each, that the board cannot be read and that it can be read again.
func (w *writer) report(err error) {
	trouble, line := "", "the board can be read again"
	if err != nil {
		trouble = terminal.OneLine(err.Error())
		line = trouble
	}
	if trouble != w.trouble {
		fmt.Fprintf(w.changes.Program.Stderr, "consumer: %s\n", line)
	}
	w.trouble = trouble
}

// whatMatters returns a report without the values that change merely with time. The text output does not
// show the lag of a board that is not behind.
func whatMatters(r report, asJSON bool) report {
	r.ReportedAt, r.BehindMS = nil, nil
	if !asJSON && r.State != reading.Behind {
		r.Lag = nil
	}
	r.Shards = slices.Clone(r.Shards)
	for i := range r.Shards {
		r.Shards[i].At = ""
	}
	return r
}
