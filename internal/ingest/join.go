package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
)

// join joins the consumer group.
func (c *Consumer) join() (Group, error) {
	brokers := c.GroupBrokers
	if brokers == nil {
		brokers = c.Brokers
	}
	config := kafka.ConsumerGroupConfig{
		ID: c.Group, Brokers: brokers, Dialer: c.Dialer, Topics: c.Topics,
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

// Next returns the group's next generation as a Generation.
func (g kafkaGroup) Next(ctx context.Context) (*Generation, error) {
	next, err := g.ConsumerGroup.Next(ctx)
	if err != nil {
		return nil, err
	}
	all := &Generation{
		ID: next.ID, Member: next.MemberID, Assignments: map[string][]int{},
		Start: next.Start,
		Commit: func(offsets map[string]map[int]kafkaconn.Commit) error {
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

// commit commits the offsets of a generation. If the brokers allow less metadata than a trail needs, commit
// logs that once, and commits offsets without metadata from then on.
func (c *Consumer) commit(generation int32, member string, all map[string]map[int]kafkaconn.Commit) error {
	err := kafkaconn.CommitOffsets(c.kafka, c.Group, generation, member, all, !c.trailless.Load())
	if !errors.Is(err, kafka.OffsetMetadataTooLarge) {
		return err
	}
	if !c.trailless.Swap(true) {
		c.Log.Warn("the brokers take no metadata as long as a trail: offsets are committed without, and nothing remembers the times of records that Kafka deletes; "+
			"if Redis is lost then, or the boards are rebuilt, windows count as incomplete. To change it, raise offset.metadata.max.bytes and restart",
			zap.Int("longest", trail.MaxText), zap.Error(err))
	}
	return kafkaconn.CommitOffsets(c.kafka, c.Group, generation, member, all, false)
}
