package terminal

// The progress of long operations: a bar on a terminal, lines in a log.

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/standings/standings/internal/units"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// Progress shows a growing count until Stop.
type Progress struct {
	w       io.Writer
	what    string // the operation
	unit    string // what is counted, in the plural
	stopped chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	notes chan string
	ended bool // Stop has shown the last notes
}

// ShowProgress starts to show count on w, with total if that is above 0. what describes the operation; unit is
// what is counted, in the plural.
func ShowProgress(w io.Writer, what, unit string, total int64, count func() int64) *Progress {
	p := &Progress{w: w, what: what, unit: unit, stopped: make(chan struct{}), done: make(chan struct{}), notes: make(chan string, 16)}
	if _, ok := Width(w); ok {
		bar := newBar(w, what, unit, total)
		away := func() { _ = bar.Clear() }
		go p.run(barEvery, func() { _ = bar.Set64(count()) }, away) // a bar that cannot be drawn is no reason to stop
	} else {
		go p.run(lineEvery, p.lines(total, count), func() {})
	}
	return p
}

// Note shows a line between updates, or at once after Stop. Before Stop it never waits: if there are too many
// notes, it drops some.
func (p *Progress) Note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		p.show(line)
		return
	}
	select {
	case p.notes <- line:
	default:
	}
}

func (p *Progress) show(note string) { fmt.Fprintln(p.w, OneLine(note)) }

// Stop returns when everything is written, including the remaining notes.
func (p *Progress) Stop() {
	close(p.stopped)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for len(p.notes) > 0 {
		p.show(<-p.notes)
	}
}

// run shows the count from time to time. It calls away to remove the count before it shows a note.
func (p *Progress) run(every time.Duration, show, away func()) {
	defer close(p.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			show()
		case line := <-p.notes:
			away()
			p.show(line)
		case <-p.stopped:
			away()
			return
		}
	}
}

func newBar(w io.Writer, what, unit string, total int64) *progressbar.ProgressBar {
	if total <= 0 {
		total = -1 // a spinner
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit),
		progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionThrottle(barEvery/2))
}

func (p *Progress) lines(total int64, count func() int64) (show func()) {
	of := ""
	if total > 0 {
		of = " of " + units.Thousands(total)
	}
	var last int64
	return func() {
		now := count()
		rate, left := (now-last)/int64(lineEvery/time.Second), ""
		if total > 0 && rate > 0 {
			left = fmt.Sprintf(", %s left", time.Duration(max(0, total-now)/rate)*time.Second)
		}
		fmt.Fprintf(p.w, "%s: %s%s %s, %s/s%s\n", p.what, units.Thousands(now), of, p.unit, units.Thousands(rate), left)
		last = now
	}
}
