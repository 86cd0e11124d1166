package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
)

// A consumer's place in its group: what it joins, what it is dealt, and what is shown of that.

// Group is a membership in a consumer group.
type Group interface {
	// Next waits for the end of the generation before, functions included, and then
	// for the next one. It ends with the context.
	Next(ctx context.Context) (*Generation, error)
	// Close leaves the group, and waits until the generation's functions have ended.
	Close() error
}

// Generation is one sharing out of the partitions.
type Generation struct {
	ID          int32
	Member      string
	Assignments map[string][]int // partitions by topic
	// Start runs a function until the generation ends, which ends its context. The
	// return of any of them ends the generation.
	Start func(func(context.Context))
	// Commit writes to the group how far partitions have come, also after the end.
	Commit func(map[string]map[int]kafkaconn.Commit) error
}

// Membership is a consumer's place in its group.
type Membership struct {
	Joined     bool      // in a generation that goes on
	Since      time.Time // of joining, or of being outside
	Generation int32     // the last one that it was in
	Joins      int64     // generations that it was in so far
	Err        error     // why it is outside, as far as known
}

// membership is kept by who joins and leaves.
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

// left is called at a generation's end.
func (m *membership) left(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Joined && m.now.Generation == generation {
		m.now.Joined, m.now.Since, m.now.Err = false, time.Now(), errJoining
	}
}

// outside is why it isn't in.
func (m *membership) outside(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.now.Joined {
		m.now.Err = why
	}
}

// balancer deals partitions out round robin, and remembers how many it dealt.
// Only the group's leader deals: so it alone can see that a topic has
// grown since.
type balancer struct {
	kafka.RoundRobinGroupBalancer
	mu    sync.Mutex     // guards dealt: kafka-go deals in a goroutine of its own
	dealt map[string]int // by topic; nil on members that aren't the leader
}

// AssignGroups deals.
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

// take is what was dealt for this generation, nil on others than the leader.
func (b *balancer) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.dealt
	b.dealt = nil
	return d
}
