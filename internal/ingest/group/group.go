// Package group is a consumer's membership in its Kafka consumer group: joining, the assignment of partitions, commits
// of a generation, and the membership that is shown.
package group

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
)

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

// Tracker is the current Membership, updated when the consumer joins and leaves.
type Tracker struct {
	mu  sync.Mutex // guards now
	now Membership
}

// ErrJoining reports that the group has not assigned its partitions yet.
var ErrJoining = errors.New("the group is dealing out its partitions")

// NewTracker returns the membership of a consumer that has not joined yet.
func NewTracker() *Tracker {
	return &Tracker{now: Membership{Since: time.Now()}}
}

// Get returns the current membership.
func (m *Tracker) Get() Membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Joined records the begin of a generation.
func (m *Tracker) Joined(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = Membership{Joined: true, Since: time.Now(), Generation: generation, Joins: m.now.Joins + 1}
}

// Left records the end of a generation.
func (m *Tracker) Left(generation int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Joined && m.now.Generation == generation {
		m.now.Joined, m.now.Since, m.now.Err = false, time.Now(), ErrJoining
	}
}

// Outside records why the consumer isn't in the group.
func (m *Tracker) Outside(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.now.Joined {
		m.now.Err = why
	}
}

// Balancer assigns partitions round robin, and remembers how many partitions each topic had. Only the group's
// leader assigns, so only the leader can notice that a topic has grown since.
type Balancer struct {
	kafka.RoundRobinGroupBalancer
	mu    sync.Mutex     // guards dealt: kafka-go assigns in its own goroutine
	dealt map[string]int // by topic; nil on members that aren't the leader
}

// AssignGroups assigns the partitions to the members, and remembers their number by topic.
func (b *Balancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	dealt := map[string]int{}
	for _, p := range partitions {
		dealt[p.Topic]++
	}
	b.mu.Lock()
	b.dealt = dealt
	b.mu.Unlock()
	return b.RoundRobinGroupBalancer.AssignGroups(members, partitions)
}

// Take returns the number of partitions by topic that were assigned for this generation; nil if this member
// isn't the leader.
func (b *Balancer) Take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.dealt
	b.dealt = nil
	return d
}

// Join joins a consumer group. It commits through client.
func Join(config kafka.ConsumerGroupConfig, client *kafka.Client, log *zap.Logger) (Group, error) {
	g, err := kafka.NewConsumerGroup(config)
	if err != nil {
		return nil, err
	}
	return &kafkaGroup{ConsumerGroup: g, id: config.ID, client: client, log: log}, nil
}

type kafkaGroup struct {
	*kafka.ConsumerGroup
	id        string
	client    *kafka.Client
	log       *zap.Logger
	trailless atomic.Bool // the brokers refuse metadata as long as a trail
}

// Next returns the group's next generation as a Generation.
func (g *kafkaGroup) Next(ctx context.Context) (*Generation, error) {
	next, err := g.ConsumerGroup.Next(ctx)
	if err != nil {
		return nil, err
	}
	all := &Generation{
		ID: next.ID, Member: next.MemberID, Assignments: map[string][]int{},
		Start: next.Start,
		Commit: func(offsets map[string]map[int]kafkaconn.Commit) error {
			return g.commit(next.ID, next.MemberID, offsets)
		},
	}
	for topic, partitions := range next.Assignments {
		for _, p := range partitions {
			all.Assignments[topic] = append(all.Assignments[topic], p.ID)
		}
	}
	return all, nil
}

// commit commits the offsets of a generation. If the brokers allow less metadata than a trail needs, commit
// logs that once, and commits offsets without metadata from then on.
func (g *kafkaGroup) commit(generation int32, member string, all map[string]map[int]kafkaconn.Commit) error {
	err := kafkaconn.CommitOffsets(g.client, g.id, generation, member, all, !g.trailless.Load())
	if !errors.Is(err, kafka.OffsetMetadataTooLarge) {
		return err
	}
	if !g.trailless.Swap(true) {
		g.log.Warn("the brokers take no metadata as long as a trail: offsets are committed without, and nothing remembers the times of records that Kafka deletes; "+
			"if Redis is lost then, or the boards are rebuilt, windows count as incomplete. To change it, raise offset.metadata.max.bytes and restart",
			zap.Int("longest", trail.MaxText), zap.Error(err))
	}
	return kafkaconn.CommitOffsets(g.client, g.id, generation, member, all, false)
}
