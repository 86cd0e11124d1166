package ingest

// The consumer group, as far as it is used. kafka-go's is what a process joins; a test
// that deals out the partitions itself gives one of its own.

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

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
	// Start runs a function until the generation ends, which its context tells. The
	// return of any of them ends the generation.
	Start func(func(context.Context))
	// Commit writes to the group how far partitions have come, also after the end.
	Commit func(map[string]map[int]Commit) error
}

// join becomes a member.
func (c *Consumer) join() (Group, error) {
	config := kafka.ConsumerGroupConfig{
		ID: c.Group, Brokers: c.Brokers, Dialer: c.Dialer, Topics: c.Topics,
		GroupBalancers:    []kafka.GroupBalancer{c.balancer},
		HeartbeatInterval: c.Heartbeat, SessionTimeout: c.SessionTimeout, RebalanceTimeout: c.SessionTimeout,
		JoinGroupBackoff: time.Second, StartOffset: kafka.FirstOffset, Timeout: c.Timeout,
	}
	if c.Join != nil {
		return c.Join(config)
	}
	g, err := kafka.NewConsumerGroup(config)
	if err != nil {
		return nil, err
	}
	return kafkaGroup{g, c}, nil
}

type kafkaGroup struct {
	*kafka.ConsumerGroup
	consumer *Consumer
}

// Next is the group's, as a Generation.
func (g kafkaGroup) Next(ctx context.Context) (*Generation, error) {
	next, err := g.ConsumerGroup.Next(ctx)
	if err != nil {
		return nil, err
	}
	all := &Generation{
		ID: next.ID, Member: next.MemberID, Assignments: map[string][]int{},
		Start: next.Start,
		Commit: func(offsets map[string]map[int]Commit) error {
			return g.consumer.commit(next.ID, next.MemberID, offsets)
		},
	}
	for topic, partitions := range next.Assignments {
		for _, p := range partitions {
			all.Assignments[topic] = append(all.Assignments[topic], p.ID)
		}
	}
	return all, nil
}
