package ingest

// The lines that workers write about themselves, for `consumer status` and for whoever
// shows a board.

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
)

// report writes the lines of a generation's workers until it ends: each every now and then,
// and at once where a partition begins, where a state has changed, and where the standings
// have lost the line. The last state is always written: what comes too soon after a line is
// looked at again.
func (c *Consumer) report(ctx context.Context, workers []*worker) {
	tick := time.NewTicker(health.ReportPause)
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
			asked := w.status.Requested()
			line, since, _ := w.status.Shown()
			if !last[i].due(line, since, asked) {
				continue
			}
			text := line.Text()
			replaced, err := c.shards[0].Report(ctx, w.Partition, text)
			if err != nil {
				c.Log.Debug("couldn't report", zap.Error(err))
				break // and again after a pause
			}
			w.status.Wrote(text)
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
func (r reported) due(l health.Line, since time.Time, asked int) bool {
	age := time.Since(r.at)
	changed := l.State != r.state || l.Reason != r.reason
	switch {
	case age >= health.ReportEvery, r.state == "" && age >= health.ReportPause:
		return true
	case r.state == "": // before the first, only what an operator has to know at once
		return asked > 0 || l.State == health.StateHalted
	case asked != r.asked:
		changed = true
	case l.State == health.StateWaiting && time.Since(since) < health.ReportPause:
		return false
	}
	return changed && age >= health.ReportPause*9/10 // ticks come a little sooner or later
}
