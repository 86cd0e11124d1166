package top

// A watched board where there is no terminal: written again each time it has changed.

import (
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/terminal"
)

// writer writes looks at a board.
type writer struct {
	changes cli.Changes
	page    *pageFlags
	zone    string
	trouble string // as it was reported last; empty for none
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
		return newText(w.changes.Program.Stdout, w.zone).write(l.board, l.missing+w.page.none(l.board)) // one of the two at most
	})
}

// report writes to stderr why the board can't be read, once, and once that it can be again.
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

// whatMatters is a report without what changes by time alone. People aren't shown the lag of a
// board that isn't behind.
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
