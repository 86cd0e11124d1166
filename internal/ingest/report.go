package ingest

// The lines that workers write about themselves, for `consumer status` and for whoever
// shows a board.

import (
	"context"
	"time"

	"go.uber.org/zap"
)

const (
	// reportEvery is how often a worker's line is written that stays as it is.
	reportEvery = 10 * time.Second
	// reportPause is how long after its last line one with another state may follow, and how
	// long a wait has to last until it is such a state: most are over in a moment.
	reportPause = time.Second
)

// report writes the lines of a generation's workers until it ends: each every now and then,
// and at once where a partition begins, where a state has changed, and where the standings
// have lost the line. The last state is always written: what comes too soon after a line is
// looked at again.
func (c *Consumer) report(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(reportPause)
	defer tick.Stop()
	last := make([]reported, len(workers))
	for i := range last {
		last[i].at = time.Now() // the first line is due after a pause
	}
	for {
		select {
		case <-c.changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for i, w := range workers {
			asked := w.asked()
			line, since, _ := w.shown()
			if !last[i].due(line, since, asked) {
				continue
			}
			text := line.text()
			replaced, err := c.Standings.Report(ctx, w.topic, w.partition, text)
			if err != nil {
				c.Log.Debug("couldn't report", zap.Error(err))
				break // and again after a pause
			}
			w.wrote(text)
			c.others.see(w.field, c.Group, replaced, c.Log)
			last[i] = reported{line.State, line.Reason, asked, time.Now()}
		}
	}
}

// reported is what a worker's last line said; empty before the first.
type reported struct {
	state, reason string
	asked         int // what had asked for it, or for one before
	at            time.Time
}

// due reports whether a line is to be written. Since is since when the worker has waited,
// and asked counts what has asked for a line.
func (r reported) due(l Line, since time.Time, asked int) bool {
	age := time.Since(r.at)
	changed := l.State != r.state || l.Reason != r.reason
	switch {
	case age >= reportEvery, r.state == "" && age >= reportPause:
		return true
	case r.state == "": // before the first, only what an operator has to know at once
		return asked > 0 || l.State == StateHalted
	case asked != r.asked:
		changed = true
	case l.State == StateWaiting && time.Since(since) < reportPause:
		return false
	}
	return changed && age >= reportPause*9/10 // ticks come a little sooner or later
}
