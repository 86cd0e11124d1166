package kafkaconn

// What logs hold, as read_committed sees it.

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Log is what Kafka holds of a partition.
type Log struct {
	Start int64 // the first offset
	End   int64 // the offset after the last one, or of the first open transaction
}

// Logs asks the leaders for the start and the end of partitions.
func Logs(ctx context.Context, client *kafka.Client, topic string, partitions ...int) (map[int]Log, error) {
	// The end first: a log that grows or is cut in between must not look as if
	// it held less than it does.
	ends, err := listOffsets(ctx, client, topic, partitions, kafka.LastOffsetOf)
	if err != nil {
		return nil, err
	}
	starts, err := listOffsets(ctx, client, topic, partitions, kafka.FirstOffsetOf)
	if err != nil {
		return nil, err
	}
	all := map[int]Log{}
	for _, p := range partitions {
		all[p] = Log{starts[p].FirstOffset, ends[p].LastOffset}
	}
	return all, nil
}

// AllLogs is Logs for all partitions of a topic, in their order, by Ask.
func AllLogs(ctx context.Context, client *kafka.Client, topic string, partitions int) ([]Log, error) {
	var all map[int]Log
	err := RetryTransient(ctx, client, func() (err error) {
		all, err = Logs(ctx, client, topic, UpTo(partitions)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	logs := make([]Log, partitions)
	for p := range logs {
		logs[p] = all[p]
	}
	return logs, nil
}

// Ends asks the leaders where logs end: for readers of what is committed before the first transaction
// that is open (kafka.ReadCommitted), or after the last record there is, so that whatever is written
// from then on is there or later (kafka.ReadUncommitted).
func Ends(ctx context.Context, client *kafka.Client, isolation kafka.IsolationLevel, topic string, partitions ...int) (map[int]int64, error) {
	found, err := listIsolated(ctx, client, topic, partitions, kafka.LastOffsetOf, isolation)
	if err != nil {
		return nil, err
	}
	all := map[int]int64{}
	for p, o := range found {
		all[p] = o.LastOffset
	}
	return all, nil
}

// LogsSince asks for the same, and from which offsets on there can be records of a time or later; a partition
// that has none is not in the second answer.
//
// In this order: the end, so that a time that finds nothing is known to have found nothing
// before it; the time; the start, so that whatever is deleted meanwhile counts as deleted,
// not as older than the time.
//
// After DeleteRecords a broker looks into the first segment with a record that is late enough, even if all of
// those are deleted, and finds none although later segments have some: for up to five minutes
// (log.retention.check.interval.ms). If a broker finds no record in a log that has lost records, LogsSince returns the start of the log.
func LogsSince(ctx context.Context, client *kafka.Client, topic string, at time.Time, partitions ...int) (map[int]Log, map[int]int64, error) {
	ends, err := listOffsets(ctx, client, topic, partitions, kafka.LastOffsetOf)
	if err != nil {
		return nil, nil, err
	}
	found, err := listOffsets(ctx, client, topic, partitions, func(p int) kafka.OffsetRequest { return kafka.TimeOffsetOf(p, at) })
	if err != nil {
		return nil, nil, err
	}
	starts, err := listOffsets(ctx, client, topic, partitions, kafka.FirstOffsetOf)
	if err != nil {
		return nil, nil, err
	}
	all, since := map[int]Log{}, map[int]int64{}
	for _, p := range partitions {
		log := Log{starts[p].FirstOffset, max(starts[p].FirstOffset, ends[p].LastOffset)}
		all[p] = log
		if log.Start > 0 && log.End > log.Start {
			since[p] = log.Start
		}
		for offset := range found[p].Offsets {
			if offset >= 0 {
				since[p] = max(offset, log.Start)
			}
		}
	}
	return all, since, nil
}

func listOffsets(ctx context.Context, client *kafka.Client, topic string, partitions []int, ask func(int) kafka.OffsetRequest) (map[int]kafka.PartitionOffsets, error) {
	return listIsolated(ctx, client, topic, partitions, ask, kafka.ReadCommitted)
}

func listIsolated(ctx context.Context, client *kafka.Client, topic string, partitions []int, ask func(int) kafka.OffsetRequest, isolation kafka.IsolationLevel) (map[int]kafka.PartitionOffsets, error) {
	requests := make([]kafka.OffsetRequest, len(partitions))
	for i, p := range partitions {
		requests[i] = ask(p)
	}
	r, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: requests}, IsolationLevel: isolation,
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

// UpTo are the numbers of that many partitions.
func UpTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
