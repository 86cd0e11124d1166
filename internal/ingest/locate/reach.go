package locate

// This file determines how far back the logs reach. That decides the cost of losing Redis: which windows can be
// restored from the log alone, and how old a backup of Redis may be.

import (
	"context"
	"fmt"

	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
)

// Reach is how far back a log reaches. The zero Reach means that no record was ever deleted from the log.
type Reach struct {
	// Since is the time, in Unix ms, from which on the log has every record.
	Since int64
	// Complete is the earliest start of a window, in Unix ms, for which the log has all events.
	Complete int64
}

// Least returns the reach of two logs together: the later of each time.
func (r Reach) Least(other Reach) Reach {
	return Reach{max(r.Since, other.Since), max(r.Complete, other.Complete)}
}

// Reach returns how far back the topic's log reaches, for the partition that reaches back the least. clock is
// Redis's. committed are the group's offsets, whose trails have the times of deleted records.
func (r *Resolver) Reach(ctx context.Context, partitions int, committed map[int]kafkaconn.Commit, clock clock) (least Reach, err error) {
	all, err := r.Beginnings(ctx, start.Where{From: start.FromEarliest}, partitions, committed)
	if err != nil {
		return Reach{}, fmt.Errorf("find how far back the log of %s reaches: %w", r.Topic, err)
	}
	judge := r.Terms.Judge(clock())
	for i := range all {
		since, complete := judge.Reach(&all[i])
		least = least.Least(Reach{since, complete})
	}
	return least, nil
}
