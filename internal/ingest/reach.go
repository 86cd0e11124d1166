package ingest

// How far back logs reach. That decides what a loss of Redis would cost: which windows the log alone brings back,
// and how old a backup of Redis may be.

import (
	"context"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
)

// Reach is how far back a log reaches. The zero Reach is that of a log from which nothing was ever deleted.
type Reach struct {
	// Since is the time, Unix ms, from which on the log has every record.
	Since int64
	// Complete is the time, Unix ms, from which on a window has to start for the log to have all of its events.
	Complete int64
}

// Least is the reach of two logs together: of each time the later.
func (r Reach) Least(other Reach) Reach {
	return Reach{max(r.Since, other.Since), max(r.Complete, other.Complete)}
}

// Reach returns how far back the log of a topic reaches, of the partition where that is the least. It writes nothing.
// The clock is Redis's; committed is what the group has committed, whose trails have the times of deleted records.
func (c *Consumer) Reach(ctx context.Context, topic string, partitions int, committed map[int]kafkaconn.Commit, clock func() time.Time) (least Reach, err error) {
	r := c.resolver(c.partition(topic, 0), health.NewStatus(c.Log, "", "", health.NewLagTracker()))
	all, err := r.beginnings(ctx, start.Where{From: start.FromEarliest}, partitions, committed)
	if err != nil {
		return Reach{}, fmt.Errorf("find how far back the log of %s reaches: %w", topic, err)
	}
	judge := r.terms.Judge(clock())
	for i := range all {
		since, complete := judge.Reach(&all[i])
		least = least.Least(Reach{since, complete})
	}
	return least, nil
}
