package ingest

// This file provides a consumer's state at a moment, for readiness and metrics.

import (
	"time"

	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// Snapshot is a consumer's state at a moment.
type Snapshot struct {
	group.Membership
	Partitions []PartitionSnapshot // those currently assigned to this member
	Memory     Memory
}

// Memory is the use of the memory for folding.
type Memory struct {
	Limit, Used, High int64 // bytes
	Waiting           int   // number of partitions that wait for their turn
}

// PartitionSnapshot is one partition of this member.
type PartitionSnapshot struct {
	Topic     string
	Partition int
	Field     string // <topic>/<partition>
	Line      workers.Line
	Since     time.Time // start of the current wait, if it waits
	Lag       workers.Lag
	// Refill is the number of records still to be read again after a loss of Redis.
	Refill int64
	// Beat is when its sweeper was last active. A running worker is active every second, or as soon as the call
	// that it waits for has ended; each call has a deadline.
	Beat time.Time
	// Shards are the shards for which the partition waits.
	Shards []health.ShardWait
}

// Snapshot returns the state of the consumer. It doesn't block.
func (c *Consumer) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{
		Membership: c.membership.Get(),
		Memory:     Memory{Limit: c.Budget.Total(), Used: c.Budget.Used(), High: c.Budget.High(), Waiting: c.Budget.Waiting()},
	}
	for _, w := range c.workers {
		p := PartitionSnapshot{Topic: w.Topic, Partition: w.Number, Field: w.Field, Lag: w.lag.Lag()}
		p.Line, p.Since, p.Beat = w.status.Shown()
		p.Refill, p.Shards = w.lag.Refilling(), w.status.Shards()
		s.Partitions = append(s.Partitions, p)
	}
	return s
}
