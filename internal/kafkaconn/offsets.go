package kafkaconn

// A group's offsets in Kafka, and their metadata.

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/offsetcommit"
)

// Commit is the offset that a group has committed for a partition, or is about to commit.
type Commit struct {
	Offset   int64
	Metadata string // the committer's note
}

// Committed returns a group's committed offsets. It omits partitions without one.
func Committed(ctx context.Context, client *kafka.Client, group, topic string, partitions ...int) (map[int]Commit, error) {
	r, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: partitions}})
	if err == nil {
		err = r.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) { // the group was never used
		return map[int]Commit{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the offsets of group %s for %s: %w", group, topic, err)
	}
	all := map[int]Commit{}
	for _, o := range r.Topics[topic] {
		if o.Error != nil {
			return nil, fmt.Errorf("fetch the offset of group %s for %s/%d: %w", group, topic, o.Partition, o.Error)
		}
		if o.CommittedOffset >= 0 {
			all[o.Partition] = Commit{o.CommittedOffset, o.Metadata}
		}
	}
	return all, nil
}

// CommitOffsets commits offsets as a member of a generation. It replaces kafka-go's call, which has no
// metadata, and its client's, which states that the offsets belong to the leader's first epoch, so that
// other consumers that start there would find the log truncated. It takes no context but the client's
// timeout: a generation's last commit comes after its end.
func CommitOffsets(client *kafka.Client, group string, generation int32, member string, all map[string]map[int]Commit, metadata bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), client.Timeout) // also after the generation's end
	defer cancel()
	request := &offsetcommit.Request{GroupID: group, GenerationID: generation, MemberID: member, RetentionTimeMs: -1}
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
	response, err := client.Transport.RoundTrip(ctx, client.Addr, request)
	if err != nil {
		return fmt.Errorf("commit offsets of group %s: %w", group, err)
	}
	answer, ok := response.(*offsetcommit.Response)
	if !ok {
		return fmt.Errorf("commit offsets of group %s: an unexpected answer %T", group, response)
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("commit the offset of group %s for %s/%d: %w", group, t.Name, p.PartitionIndex, kafka.Error(p.ErrorCode))
			}
		}
	}
	return nil
}
