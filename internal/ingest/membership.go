package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
)

// This file has a consumer's membership in its group: joining, assignments, and the membership that is shown.

// Group is a membership in a consumer group.
type Group interface {
	// Next waits until the previous generation and its functions have ended, and then returns the next one. It
	// ends with ctx.
	Next(ctx context.Context) (*Generation, error)
	// Close leaves the group, and waits until the generation's functions have ended.
	Close() error
}

// Generation is one assignment of the partitions to the group's members.
type Generation struct {
	ID          int32
	Member      string
	Assignments map[string][]int // partitions by topic
	// Start runs a function until the generation ends; the generation's end cancels the function's context. The
	// generation also ends if any of its functions returns.
	Start func(func(context.Context))
	// Commit writes the offsets of partitions to the group, also after the generation's end.
	Commit func(map[string]map[int]kafkaconn.Commit) error
}

// Membership is a consumer's place in its group.
type Membership struct {
	Joined     bool      // the consumer is in a current generation
	Since      time.Time // when it joined, or left
	Generation int32     // the last generation that it was in
	Joins      int64     // number of generations that it was in so far
	Err        error     // why it is outside, if known
}

// membership is the current Membership, updated when the consumer joins and leaves.
type membership struct {
	mu  sync.Mutex // guards now
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

// left records the end of a generation.
func (m *membership) left(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Joined && m.now.Generation == generation {
		m.now.Joined, m.now.Since, m.now.Err = false, time.Now(), errJoining
	}
}

// outside records why the consumer isn't in the group.
func (m *membership) outside(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.now.Joined {
		m.now.Err = why
	}
}

// balancer assigns partitions round robin, and remembers how many partitions each topic had. Only the group's
// leader assigns, so only the leader can notice that a topic has grown since.
type balancer struct {
	kafka.RoundRobinGroupBalancer
	mu    sync.Mutex     // guards dealt: kafka-go assigns in its own goroutine
	dealt map[string]int // by topic; nil on members that aren't the leader
}

// AssignGroups assigns the partitions to the members, and remembers their number by topic.
func (b *balancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	dealt := map[string]int{}
	for _, p := range partitions {
		dealt[p.Topic]++
	}
	b.mu.Lock()
	b.dealt = dealt
	b.mu.Unlock()
	return b.RoundRobinGroupBalancer.AssignGroups(members, partitions)
}

// take returns the number of partitions by topic that were assigned for this generation; nil if this member
// isn't the leader.
func (b *balancer) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.dealt
	b.dealt = nil
	return d
}
