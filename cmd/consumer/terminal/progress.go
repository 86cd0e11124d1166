package terminal

// How far something that takes long has come: a bar for a person, lines for a log.

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/standings/standings/cmd/consumer/units"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// Progress shows a count that others raise, until stop.
type Progress struct {
	stopped chan struct{}
	done    chan struct{}
	notes   chan string
}

// ShowProgress starts to show count, of total where that is above 0, on w.
func ShowProgress(w io.Writer, what string, total int64, count func() int64) *Progress {
	p := &Progress{stopped: make(chan struct{}), done: make(chan struct{}), notes: make(chan string, 16)}
	if _, ok := Width(w); ok {
		go p.bar(w, what, total, count)
	} else {
		go p.lines(w, what, total, count)
	}
	return p
}

// Note shows a line between. It never waits: in a storm of failures some go
// unsaid.
func (p *Progress) Note(line string) {
	select {
	case p.notes <- strings.ReplaceAll(line, "\n", " "):
	default:
	}
}

// Stop returns when nothing more is written.
func (p *Progress) Stop() {
	close(p.stopped)
	<-p.done
}

func (p *Progress) bar(w io.Writer, what string, total int64, count func() int64) {
	defer close(p.done)
	if total <= 0 {
		total = -1 // a spinner
	}
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("events"),
		progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionThrottle(barEvery/2))
	tick := time.NewTicker(barEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = bar.Set64(count()) // a bar that can't be drawn is no reason to stop
		case line := <-p.notes:
			_ = bar.Clear()
			fmt.Fprintln(w, line)
		case <-p.stopped:
			_ = bar.Clear()
			return
		}
	}
}

func (p *Progress) lines(w io.Writer, what string, total int64, count func() int64) {
	defer close(p.done)
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	of := ""
	if total > 0 {
		of = " of " + units.Thousands(total)
	}
	var last int64
	for {
		select {
		case <-tick.C:
			now := count()
			rate, left := (now-last)/int64(lineEvery/time.Second), ""
			if total > 0 && rate > 0 {
				left = fmt.Sprintf(", %s left", time.Duration(max(0, total-now)/rate)*time.Second)
			}
			fmt.Fprintf(w, "%s: %s%s events, %s/s%s\n", what, units.Thousands(now), of, units.Thousands(rate), left)
			last = now
		case line := <-p.notes:
			fmt.Fprintln(w, line)
		case <-p.stopped:
			return
		}
	}
}
