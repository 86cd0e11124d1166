package ingest

// The state of a consumer at a moment, for whoever shows it: readiness and metrics.

import (
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// Snapshot is a consumer at a moment.
type Snapshot struct {
	Membership
	Partitions []PartitionSnapshot // those that this member has now
	Memory     Memory
}

// Memory is what folding has of the memory for it.
type Memory struct {
	Limit, Used, High int64 // bytes
	Waiting           int   // partitions that wait for their turn
}

// PartitionSnapshot is one partition of this member.
type PartitionSnapshot struct {
	Topic     string
	Partition int
	Field     string // <topic>/<partition>
	Line      workers.Line
	Since     time.Time // of waiting, where it waits
	Lag       workers.Lag
	// Refill is how many records are still to be read again since Redis was lost.
	Refill int64
	// Beat is when its sweeping last came round. A worker that runs does so every
	// second, or once a call that it waits for has ended: each has a deadline.
	Beat time.Time
	// Shards are the shards that it waits for.
	Shards []health.ShardWait
}

// Snapshot is the state of the consumer. It answers at once.
func (c *Consumer) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{
		Membership: c.membership.get(),
		Memory:     Memory{Limit: c.memory.Total(), Used: c.memory.Used(), High: c.memory.High(), Waiting: c.memory.Waiting()},
	}
	for _, w := range c.workers {
		p := PartitionSnapshot{Topic: w.Topic, Partition: w.Number, Field: w.field, Lag: w.lag.Lag()}
		p.Line, p.Since, p.Beat = w.status.Shown()
		p.Refill, p.Shards = w.lag.Refilling(), w.status.Shards()
		s.Partitions = append(s.Partitions, p)
	}
	return s
}
