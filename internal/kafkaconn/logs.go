package kafkaconn

// The offsets of logs, as a read_committed consumer sees them.

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Log is the range of offsets that Kafka has of a partition.
type Log struct {
	Start int64 // the first offset
	End   int64 // the offset after the last record, or of the first open transaction
}

// Logs requests the start and the end of partitions from their leaders.
func Logs(ctx context.Context, client *kafka.Client, topic string, partitions ...int) (map[int]Log, error) {
	// The end first: if the log grows or is truncated between the calls, it must not seem to have fewer
	// records than it has.
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

// AllLogs returns Logs for all partitions of a topic, in order. It retries transient errors.
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

// Ends requests the ends of logs from their leaders: with kafka.ReadCommitted the offset of the first open
// transaction, or the log's end if there is none; with kafka.ReadUncommitted the offset after the last
// record, so that all later records are at this offset or after it.
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

// LogsSince returns the same as Logs, and for each partition the first offset from which records can have
// the given time or a later one. The second result omits partitions without such records.
//
// It requests the end first: if a broker then finds no record with the time, all records before that end are
// older. Then it requests the time, and then the start, so that records deleted meanwhile count as deleted,
// not as older than the time.
//
// After DeleteRecords a broker searches only the first segment that has a late enough record, even if all
// records of the segment are deleted. It then finds none although later segments have some, for up to five
// minutes (log.retention.check.interval.ms). So if a broker finds no record in a log that has lost records,
// LogsSince returns the start of the log.
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

// UpTo returns the numbers of the first n partitions.
func UpTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
