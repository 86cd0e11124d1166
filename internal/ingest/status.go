package ingest

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// Line is what a worker writes about itself, for `consumer status`. Nothing is
// decided by it.
type Line struct {
	// Written is when it was written by the standings' clock, which all lines are aged by:
	// Report puts it in. 0 in those of older versions.
	Written int64 `json:"written,omitempty"` // Unix ms

	Owner  string    `json:"owner"`
	State  string    `json:"state"`            // running, waiting or halted
	Reason string    `json:"reason,omitempty"` // of HaltReasons or, where it waits, of WaitReasons; throttled where it runs so
	What   string    `json:"what,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
	At     time.Time `json:"at"` // by the worker's own clock
	// RecordTime is the time of the latest record that was swept.
	RecordTime time.Time `json:"record_time,omitzero"`
	Group      string    `json:"group,omitempty"` // the consumer group that it works in
	// Lag is how many records the ledger was behind the log, nil where that isn't known, and
	// Oldest the time of the oldest of them, zero without one.
	Lag    *int64    `json:"lag,omitempty"`
	Oldest time.Time `json:"oldest,omitzero"`
}

// Time is when the line was written, as exactly as is known.
func (l Line) Time() time.Time {
	if l.Written > 0 {
		return time.UnixMilli(l.Written).UTC()
	}
	return l.At
}

// States of a worker.
const (
	StateRunning = "running"
	StateWaiting = "waiting"
	StateHalted  = "halted"
)

// status is a worker's state. What goes on is told now and then, not every time.
type status struct {
	mu     sync.Mutex
	begun  time.Time // the flow under way
	halt   *Halt
	wait   [3]error // what reading, writing and everything between them wait for
	since  [3]time.Time
	told   time.Time
	newest time.Time
	// When a broker last asked to be left alone, and for how long.
	throttledAt  time.Time
	throttledFor time.Duration

	beat time.Time // when sweeping, or what comes before it, last came round

	wrote string // the line that was written last; empty before the first
	asks  int    // counts what asks for a line at once although the state is as it was
	anew  bool   // the standings had no position: the flow that begins next is news
}

const (
	waitsRead = iota
	waitsWrite
	waitsStart
)

// waitTold is how often a wait that goes on is told.
const waitTold = 5 * time.Second

// started is called where a flow has found its position.
func (w *worker) started(at ledger.Position) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	first := w.state.begun.IsZero()
	w.state.begun = time.Now()
	w.caughtUp.Store(false)
	w.note(waitsStart, nil)
	if first || w.state.anew {
		w.state.anew = false
		w.askForLine()
	}
	if first {
		w.log.Info("partition running", zap.Stringer("position", at))
	}
}

// reading, writing and waiting tell what a side waits for, nil once it goes on.
func (w *worker) reading(err error) { w.waits(waitsRead, err) }
func (w *worker) writing(err error) { w.waits(waitsWrite, err) }
func (w *worker) waiting(err error) { w.waits(waitsStart, err) }

func (w *worker) waits(side int, err error) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	w.note(side, err)
}

func (w *worker) note(side int, err error) {
	if side != waitsRead { // a reader may rightly be held up, by memory for instance
		w.state.beat = time.Now()
	}
	before := w.state.wait[side]
	w.state.wait[side] = err
	if before == nil {
		w.state.since[side] = time.Now()
	}
	switch {
	case err == nil && before != nil:
		w.log.Info("going on", zap.NamedError("after", before))
		if time.Since(w.state.since[side]) >= reportPause { // a line may have said so
			w.tellChanged()
		}
	case err != nil && time.Since(w.state.told) >= waitTold:
		w.state.told = time.Now()
		reason, _ := classifyWait(err)
		w.log.Warn("waiting, and trying again", zap.String("reason", reason), zap.Error(err))
	}
}

// halted tells of a halt, once, and reports whether it was told before.
func (w *worker) halted(h *Halt) (again bool) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	if again = w.state.halt != nil && w.state.halt.Reason == h.Reason; !again {
		w.log.Error("partition halted", zap.String("reason", h.Reason), zap.String("what", h.What), zap.String("remedy", h.Remedy))
	}
	w.state.halt, w.state.beat = h, time.Now()
	if !again {
		w.tellChanged()
	}
	return again
}

// looked is called where the ledger stands as it should. A halt is over once a
// batch is through, or where there is nothing to read: a flow that is still on
// its way to what halted the one before has left nothing behind.
func (w *worker) looked() {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	w.note(waitsWrite, nil)
	if time.Since(w.state.begun) > 2*lookEvery && w.caughtUp.Load() {
		w.goOn()
	}
}

// swept is called where a batch is through.
func (w *worker) swept(newest int64) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	w.state.beat = time.Now()
	if newest > 0 {
		w.state.newest = time.UnixMilli(newest).UTC()
	}
	w.goOn()
}

func (w *worker) goOn() {
	if w.state.halt != nil {
		w.log.Info("partition goes on: the cause of its halt is gone", zap.String("reason", w.state.halt.Reason))
		w.state.halt = nil
		w.tellChanged()
	}
}

// compare holds what the standings have of the partition, its position and its line,
// against what was written. A Redis that was wiped, or went back, has another line or none:
// until the next one every reader would take this worker for gone. A line that is being
// written meanwhile is taken for lost, too, and written once more.
func (w *worker) compare(position, line string) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	if position == "" {
		w.state.anew = true
	}
	// The standings put the time before what they are given.
	if wrote := w.state.wrote; wrote != "" && !strings.HasSuffix(line, wrote[1:]) {
		w.askForLine()
	}
}

// askForLine has the worker's line written at once. Its lock is held.
func (w *worker) askForLine() {
	w.state.asks++
	w.tellChanged()
}

// asked counts what has asked for a line. What asks after that asks for one more.
func (w *worker) asked() int {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	return w.state.asks
}

// wrote notes the line that was written.
func (w *worker) wrote(line string) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	w.state.wrote = line
}

// tellChanged has lines that have changed written.
func (w *worker) tellChanged() {
	select {
	case w.changed <- struct{}{}:
	default: // it is already due, or nobody writes lines
	}
}

// line is the worker's line as of now.
func (w *worker) line() Line {
	l, _, _ := w.shown()
	return l
}

// shown is the line; since when the worker has waited, where it does; and when it last
// came round.
func (w *worker) shown() (l Line, since, beat time.Time) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	l = Line{Owner: w.Owner, Group: w.Group, State: StateRunning, At: time.Now().UTC(), RecordTime: w.state.newest}
	if lag := w.lag.get(); lag.Known {
		l.Lag, l.Oldest = &lag.Records, lag.Since.UTC()
	}
	for side, err := range w.state.wait {
		if err != nil {
			l.State, l.What = StateWaiting, err.Error()
			l.Reason, l.Remedy = classifyWait(err)
			if since.IsZero() || w.state.since[side].Before(since) {
				since = w.state.since[side]
			}
		}
	}
	if l.State == StateRunning && w.state.isThrottled() {
		l.Reason, l.What, l.Remedy = WaitsThrottled, throttleSlows, throttleRemedy
	}
	if h := w.state.halt; h != nil {
		l.State, l.Reason, l.What, l.Remedy = StateHalted, h.Reason, h.What, h.Remedy
	}
	return l, since, w.state.beat
}

func (l Line) text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and times only
	}
	return string(text)
}
