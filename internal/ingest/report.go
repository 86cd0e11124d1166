package ingest

// This file writes the status lines of workers, for `consumer status` and for readers that show boards: one
// call per second for all workers of a process. A worker that stops normally removes its line; the line of one
// that dies is stale after three seconds.

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
)

// report writes the lines of a generation's workers until ctx ends, and removes them once the workers have
// stopped.
func (c *Consumer) report(ctx context.Context, all []*worker, running *sync.WaitGroup) {
	tick := time.NewTicker(workers.ReportEvery)
	defer tick.Stop()
	var stored []ledger.Line
	for {
		stored = c.writeLines(ctx, all, stored)
		select {
		case <-tick.C:
		case <-ctx.Done():
			running.Wait()
			c.retract(stored)
			return
		}
	}
}

// writeLines writes the current lines and returns the stored lines.
func (c *Consumer) writeLines(ctx context.Context, all []*worker, last []ledger.Line) []ledger.Line {
	lines := make([]ledger.Line, len(all))
	for i, w := range all {
		line, since, _ := w.status.Shown()
		if line.State == workers.StateWaiting && time.Since(since) < workers.ReportEvery { // most waits are over in a moment
			line.State, line.Reason, line.What, line.Remedy = workers.StateRunning, "", "", ""
		}
		line.TimeZoneData = c.TimeZoneData
		lines[i] = ledger.Line{Partition: w.Partition, Text: line.Text()}
	}
	if len(lines) == 0 {
		return nil
	}
	stored, before, err := c.shards[0].Report(ctx, lines)
	if err != nil {
		c.Log.Debug("could not report", zap.Error(err))
		return last
	}
	for i := range lines {
		if last == nil || before[i] != last[i].Text {
			c.others.see(all[i].field, c.Group, before[i], c.Log)
		}
		lines[i].Text = stored[i]
	}
	return lines
}

// retract removes the stored lines, in one attempt: they would become stale soon anyway.
func (c *Consumer) retract(stored []ledger.Line) {
	if len(stored) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), workers.ReportEvery)
	defer cancel()
	if err := c.shards[0].Retract(ctx, stored); err != nil {
		c.Log.Debug("could not take the reports back", zap.Error(err))
	}
}
