package ingest

// The group's offsets in Kafka, and their metadata.

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/offsetcommit"
	"go.uber.org/zap"
)

// Commit is what the group has committed of a partition, or is to.
type Commit struct {
	Offset   int64
	Metadata string // a trail, or another program's
}

// trail is the metadata's, none where it is another program's.
func (c Commit) trail() trail {
	t, err := parseTrail(c.Metadata)
	if err != nil {
		return trail{}
	}
	return t
}

// committed are the group's offsets; a partition without one isn't in the answer.
func (b *broker) committed(ctx context.Context, topic string, partitions ...int) (map[int]Commit, error) {
	ctx, cancel := b.call(ctx)
	defer cancel()
	r, err := b.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: b.group, Topics: map[string][]int{topic: partitions}})
	if err == nil {
		err = r.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) { // never used yet
		return map[int]Commit{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the offsets of group %s for %s: %w", b.group, topic, err)
	}
	all := map[int]Commit{}
	for _, o := range r.Topics[topic] {
		if o.Error != nil {
			return nil, fmt.Errorf("fetch the offset of group %s for %s/%d: %w", b.group, topic, o.Partition, o.Error)
		}
		if o.CommittedOffset >= 0 {
			all[o.Partition] = Commit{o.CommittedOffset, o.Metadata}
		}
	}
	return all, nil
}

// commit has a generation's member commit offsets. kafka-go's own call for that knows no
// metadata, and its client's claims that they are of the leader's first epoch, which has
// others who begin there take the log for truncated.
func (b *broker) commit(generation int32, member string, all map[string]map[int]Commit, metadata bool) error {
	ctx, cancel := b.call(context.Background()) // also after the generation's end
	defer cancel()
	request := &offsetcommit.Request{GroupID: b.group, GenerationID: generation, MemberID: member, RetentionTimeMs: -1}
	for topic, offsets := range all {
		t := offsetcommit.RequestTopic{Name: topic}
		for p, c := range offsets {
			partition := offsetcommit.RequestPartition{PartitionIndex: int32(p), CommittedOffset: c.Offset, CommittedLeaderEpoch: -1}
			if metadata {
				partition.CommittedMetadata = c.Metadata
			}
			t.Partitions = append(t.Partitions, partition)
		}
		request.Topics = append(request.Topics, t)
	}
	response, err := b.client.Transport.RoundTrip(ctx, b.client.Addr, request)
	if err != nil {
		return fmt.Errorf("commit offsets of group %s: %w", b.group, err)
	}
	answer, ok := response.(*offsetcommit.Response)
	if !ok {
		return fmt.Errorf("commit offsets of group %s: an unexpected answer %T", b.group, response)
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("commit the offset of group %s for %s/%d: %w", b.group, t.Name, p.PartitionIndex, kafka.Error(p.ErrorCode))
			}
		}
	}
	return nil
}

// commit is a generation's. A broker may take less metadata than a trail has: it is told of
// once, and goes without.
func (c *Consumer) commit(generation int32, member string, all map[string]map[int]Commit) error {
	err := c.kafka.commit(generation, member, all, !c.trailless.Load())
	if !errors.Is(err, kafka.OffsetMetadataTooLarge) {
		return err
	}
	if !c.trailless.Swap(true) {
		c.Log.Warn("the brokers take no metadata as long as a trail: offsets are committed without, and nothing remembers the times of records that Kafka deletes; "+
			"if Redis is lost then, or the boards are rebuilt, windows count as incomplete. To change it, raise offset.metadata.max.bytes and restart",
			zap.Int("longest", maxTrail), zap.Error(err))
	}
	return c.kafka.commit(generation, member, all, false)
}
