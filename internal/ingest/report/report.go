// Package report writes the status lines of workers, for `consumer status` and for readers that show boards: one call
// per second for all workers of a process. A worker that stops normally removes its line; the line of one that dies is
// stale after three seconds.
package report

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
)

// Reporter writes the status lines of a consumer's workers.
type Reporter struct {
	Standings    shards.Standings // of the shard that has the lines
	Group        string
	TimeZoneData string // the version of this process's time zone data
	Log          *zap.Logger
	others       otherGroups
}

// Worker is a worker whose line is written.
type Worker struct {
	ledger.Partition
	Status *health.Status
}

// Run writes the lines of a generation's workers until ctx ends, and removes them once the workers have
// stopped.
func (r *Reporter) Run(ctx context.Context, all []Worker, running *sync.WaitGroup) {
	tick := time.NewTicker(workers.ReportEvery)
	defer tick.Stop()
	var stored []ledger.Line
	for {
		stored = r.writeLines(ctx, all, stored)
		select {
		case <-tick.C:
		case <-ctx.Done():
			running.Wait()
			r.retract(stored)
			return
		}
	}
}

// writeLines writes the current lines and returns the stored lines.
func (r *Reporter) writeLines(ctx context.Context, all []Worker, last []ledger.Line) []ledger.Line {
	lines := make([]ledger.Line, len(all))
	for i, w := range all {
		line, since, _ := w.Status.Shown()
		if line.State == workers.StateWaiting && time.Since(since) < workers.ReportEvery { // most waits are over in a moment
			line.State, line.Reason, line.What, line.Remedy = workers.StateRunning, "", "", ""
		}
		line.TimeZoneData = r.TimeZoneData
		lines[i] = ledger.Line{Partition: w.Partition, Text: line.Text()}
	}
	if len(lines) == 0 {
		return nil
	}
	stored, before, err := r.Standings.Report(ctx, lines)
	if err != nil {
		r.Log.Debug("could not report", zap.Error(err))
		return last
	}
	for i := range lines {
		if last == nil || before[i] != last[i].Text {
			r.others.see(all[i].String(), r.Group, before[i], r.Log)
		}
		lines[i].Text = stored[i]
	}
	return lines
}

// retract removes the stored lines, in one attempt: they would become stale soon anyway.
func (r *Reporter) retract(stored []ledger.Line) {
	if len(stored) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), workers.ReportEvery)
	defer cancel()
	if err := r.Standings.Retract(ctx, stored); err != nil {
		r.Log.Debug("could not take the reports back", zap.Error(err))
	}
}

// The rest of this file detects a second group that writes under the same prefix. Each event still counts once, since there
// is one ledger, but each group finds the ledger moved by the other and counts a part of the events. The
// consumer can't refuse to start because of this: a group that was renamed a moment ago looks the same. So it
// logs a warning.
//
// A worker detects the other group by the status line that its own line replaces. A line of another owner in
// the same group is normal after a rebalance. A line of another group may be left over from before a rename,
// but only once. A worker that finds such a line again in the same partition, within workers.StaleAfter (the
// time of three lines), shares the partition with a group that still writes.

// otherGroupLogEvery is the minimum interval between two log lines about a second group.
const otherGroupLogEvery = time.Minute

// otherGroups holds the partitions in which lines of other groups were found.
type otherGroups struct {
	mu     sync.Mutex           // guards found and logged
	found  map[string]time.Time // by partition: the last time
	logged retry.LogLimit
}

// see checks the line that a worker's own line has replaced; replaced is empty if there was no line.
func (o *otherGroups) see(field, group, replaced string, log *zap.Logger) {
	var l workers.Line
	if json.Unmarshal([]byte(replaced), &l) != nil || l.Group == "" || l.Group == group {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, again := o.found[field]
	if o.found == nil {
		o.found = map[string]time.Time{}
	}
	o.found[field] = time.Now()
	if !again || time.Since(before) > workers.StaleAfter || !o.logged.Due(otherGroupLogEvery) {
		return
	}
	log.Warn("another group counts under this prefix: each event counts once all the same, and either group finds the ledger moved by the other",
		zap.String("group", group), zap.String("other_group", l.Group), zap.String("other_owner", l.Owner), zap.String("partition", field),
		zap.String("remedy", "unless this group has just been renamed, stop one of the two, or give it a redis.prefix of its own"))
}
