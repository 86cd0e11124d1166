package ingest

// How a consumer stands at a moment, for whoever shows it: readiness and metrics.

import (
	"errors"
	"sync"
	"time"
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

// Membership is a consumer's place in its group.
type Membership struct {
	Joined     bool      // in a generation that goes on
	Since      time.Time // of joining, or of being outside
	Generation int32     // the last one that it was in
	Joins      int64     // generations that it was in so far
	Err        error     // why it is outside, as far as known
}

// PartitionSnapshot is one partition of this member.
type PartitionSnapshot struct {
	Topic     string
	Partition int
	Field     string // <topic>/<partition>
	Line      Line
	Since     time.Time // of waiting, where it waits
	Lag       Lag
	// Refill is how many records are still to be read again since Redis was lost.
	Refill int64
	// Beat is when its sweeping last came round. A worker that runs does so every
	// second, or once a call that it waits for has ended: each has a deadline.
	Beat time.Time
}

// Snapshot tells how the consumer stands. It answers at once.
func (c *Consumer) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{
		Membership: c.membership.get(),
		Memory:     Memory{Limit: c.memory.Total(), Used: c.memory.Used(), High: c.memory.High(), Waiting: c.memory.Waiting()},
	}
	for _, w := range c.workers {
		p := PartitionSnapshot{Topic: w.topic, Partition: w.partition, Field: w.field, Lag: w.lag.get()}
		p.Line, p.Since, p.Beat = w.shown()
		p.Refill = w.refilling()
		s.Partitions = append(s.Partitions, p)
	}
	return s
}

// refilling is how many records are still to be read again since Redis was lost.
func (w *worker) refilling() int64 {
	to := w.refill.Load()
	w.lag.mu.Lock()
	defer w.lag.mu.Unlock()
	if to == 0 || w.lag.from < 0 {
		return 0
	}
	return max(0, to-w.lag.from)
}

// membership is kept by who joins and leaves.
type membership struct {
	mu  sync.Mutex
	now Membership
}

var errJoining = errors.New("the group is dealing out its partitions")

func newMembership() *membership {
	return &membership{now: Membership{Since: time.Now()}}
}

func (m *membership) get() Membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *membership) joined(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = Membership{Joined: true, Since: time.Now(), Generation: generation, Joins: m.now.Joins + 1}
}

// left is called at a generation's end.
func (m *membership) left(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Joined && m.now.Generation == generation {
		m.now.Joined, m.now.Since, m.now.Err = false, time.Now(), errJoining
	}
}

// outside tells why it isn't in.
func (m *membership) outside(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.now.Joined {
		m.now.Err = why
	}
}
