package ingest

// What the log alone would bring back if Redis were lost now: the line of the start table for that, of
// every partition, whatever on_gap says.

import (
	"context"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Reach is how far back the log of a partition reaches.
type Reach struct {
	Partition ledger.Partition
	Log       kafkaconn.Log
	// Whole: every window that lives now is complete from the log's start.
	Whole bool
	// Before is the time, Unix ms, before which windows that begin may lack events that were deleted; 0
	// for none.
	Before int64
}

// Reach looks at every partition of a topic, and writes nothing. The clock is Redis's; committed has what
// the group has committed, whose trails know of times that were deleted.
func (c *Consumer) Reach(ctx context.Context, topic string, partitions int, committed map[int]kafkaconn.Commit, clock func() time.Time) ([]Reach, error) {
	r := c.resolver(c.partition(topic, 0), health.NewStatus(c.Log, "", "", nil, health.NewLagTracker()))
	from, err := r.terms.Window(clock())
	if err != nil {
		return nil, fmt.Errorf("find how far back the log of %s reaches: %w", topic, err)
	}
	all, err := r.beginnings(ctx, from, partitions, committed)
	if err != nil {
		return nil, fmt.Errorf("find how far back the log of %s reaches: %w", topic, err)
	}
	judge := r.terms.Judge(clock())
	reach := make([]Reach, len(all))
	for n := range all {
		whole, before := judge.Reach(&all[n], from)
		reach[n] = Reach{ledger.Partition{Topic: topic, Number: n}, all[n].Log, whole, before}
	}
	return reach, nil
}
