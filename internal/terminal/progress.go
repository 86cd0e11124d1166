package terminal

// The progress of long operations: one line that is rewritten on a terminal, lines in a log.

import (
	"fmt"
	"io"
	"sync"
	"time"

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
		// A carriage return and the erased line let the next text take the place of this one.
		go p.run(barEvery, p.line(barEvery, total, count, "\r"+lineErase, ""), func() { fmt.Fprint(w, "\r"+lineErase) })
	} else {
		go p.run(lineEvery, p.line(lineEvery, total, count, "", "\n"), func() {})
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

// line returns a function that shows the count, and the rate of the last few seconds.
func (p *Progress) line(every time.Duration, total int64, count func() int64, before, after string) (show func()) {
	of := ""
	if total > 0 {
		of = " of " + units.Thousands(total)
	}
	counts := []int64{0} // one for each interval, the oldest of which is at most lineEvery old
	return func() {
		now := count()
		took := time.Duration(len(counts)) * every
		rate, left := int64(float64(now-counts[0])/took.Seconds()), ""
		if total > 0 && rate > 0 {
			left = fmt.Sprintf(", %s left", time.Duration(max(0, total-now)/rate)*time.Second)
		}
		fmt.Fprintf(p.w, "%s%s: %s%s %s, %s/s%s%s", before, p.what, units.Thousands(now), of, p.unit, units.Thousands(rate), left, after)
		if counts = append(counts, now); took >= lineEvery {
			counts = counts[1:]
		}
	}
}
