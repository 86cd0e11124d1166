package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// broker asks Kafka what the log holds. Every call has a deadline.
type broker struct {
	client  *kafka.Client
	group   string
	timeout time.Duration
}

// bounds of a partition's log, as read_committed sees it.
type bounds struct{ start, end int64 }

func (b *broker) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.timeout)
}

// metadata counts the partitions of topics that exist.
func (b *broker) metadata(ctx context.Context, topics ...string) (map[string]int, error) {
	ctx, cancel := b.call(ctx)
	defer cancel()
	m, err := b.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("ask %v for metadata: %w", b.client.Addr, err)
	}
	partitions := map[string]int{}
	for _, t := range m.Topics {
		if t.Error != nil {
			if errors.Is(t.Error, kafka.UnknownTopicOrPartition) || errors.Is(t.Error, kafka.LeaderNotAvailable) {
				continue
			}
			return nil, fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		partitions[t.Name] = len(t.Partitions)
	}
	return partitions, nil
}

// bounds asks the leaders for the start and the end of partitions.
func (b *broker) bounds(ctx context.Context, topic string, partitions ...int) (map[int]bounds, error) {
	// The end first: a log that grows or is cut in between must not look as if
	// it held less than it does.
	ends, err := b.offsets(ctx, topic, partitions, kafka.LastOffsetOf)
	if err != nil {
		return nil, err
	}
	starts, err := b.offsets(ctx, topic, partitions, kafka.FirstOffsetOf)
	if err != nil {
		return nil, err
	}
	all := map[int]bounds{}
	for _, p := range partitions {
		all[p] = bounds{starts[p].FirstOffset, ends[p].LastOffset}
	}
	return all, nil
}

// boundsSince asks for the same, and for the first offsets of records of a time or later;
// a partition that has none isn't in the second answer.
//
// In this order: the end, so that a time that finds nothing is known to have found nothing
// before it; the time; the start, so that whatever is deleted meanwhile counts as deleted,
// not as older than the time.
func (b *broker) boundsSince(ctx context.Context, topic string, at time.Time, partitions ...int) (map[int]bounds, map[int]int64, error) {
	ends, err := b.offsets(ctx, topic, partitions, kafka.LastOffsetOf)
	if err != nil {
		return nil, nil, err
	}
	since, err := b.since(ctx, topic, at, partitions...)
	if err != nil {
		return nil, nil, err
	}
	starts, err := b.offsets(ctx, topic, partitions, kafka.FirstOffsetOf)
	if err != nil {
		return nil, nil, err
	}
	all := map[int]bounds{}
	for _, p := range partitions {
		all[p] = bounds{starts[p].FirstOffset, max(starts[p].FirstOffset, ends[p].LastOffset)}
		if first, ok := since[p]; ok {
			since[p] = max(first, starts[p].FirstOffset)
		}
	}
	return all, since, nil
}

// since finds the first offsets of records of a time or later; a partition that
// has none isn't in the answer.
func (b *broker) since(ctx context.Context, topic string, at time.Time, partitions ...int) (map[int]int64, error) {
	found, err := b.offsets(ctx, topic, partitions, func(p int) kafka.OffsetRequest { return kafka.TimeOffsetOf(p, at) })
	if err != nil {
		return nil, err
	}
	all := map[int]int64{}
	for p, o := range found {
		for offset := range o.Offsets {
			if offset >= 0 {
				all[p] = offset
			}
		}
	}
	return all, nil
}

func (b *broker) offsets(ctx context.Context, topic string, partitions []int, ask func(int) kafka.OffsetRequest) (map[int]kafka.PartitionOffsets, error) {
	ctx, cancel := b.call(ctx)
	defer cancel()
	requests := make([]kafka.OffsetRequest, len(partitions))
	for i, p := range partitions {
		requests[i] = ask(p)
	}
	r, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: requests}, IsolationLevel: kafka.ReadCommitted,
	})
	if err != nil {
		return nil, fmt.Errorf("list the offsets of %s: %w", topic, err)
	}
	all := map[int]kafka.PartitionOffsets{}
	for _, o := range r.Topics[topic] {
		if o.Error != nil {
			return nil, fmt.Errorf("list the offsets of %s/%d: %w", topic, o.Partition, o.Error)
		}
		all[o.Partition] = o
	}
	for _, p := range partitions {
		if _, ok := all[p]; !ok {
			return nil, fmt.Errorf("list the offsets of %s/%d: no answer", topic, p)
		}
	}
	return all, nil
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
