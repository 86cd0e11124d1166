package locate

// This file distinguishes a first start from the loss of Redis. If there is no ledger and there are no
// committed offsets, both look the same: Kafka deletes the offsets of a group that was inactive for a week
// (offsets.retention.minutes).

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// firstStart halts a start that would leave out events in the log if there are traces of an earlier start. A
// start at the window or at the log's beginning leaves out none: a lost Redis needs the same start.
func (r *Resolver) firstStart(ctx context.Context, from start.Where) error {
	if from.From != start.FromLatest && from.From != start.FromTime {
		return nil
	}
	trace, err := r.deadLettersThere(ctx)
	if err == nil && trace == "" && r.Traces != nil {
		trace, err = r.Traces(ctx)
	}
	if err != nil {
		return fmt.Errorf("find out whether this is the first start: %w", err)
	}
	if trace != "" {
		return &health.Halt{Reason: health.HaltGap,
			What: fmt.Sprintf("Redis has nothing of %s and Kafka has no offsets of group %s, as at a first start, but %s: "+
				"Redis was probably lost, and the setting start would leave out what the log has", r.Topic, r.Group, trace),
			Remedy: "set start: window, which counts what the log has of all windows that still live, or restore a backup of Redis; for a first start use another group and prefix"}
	}
	r.Log.Warn("first start: events that are in the log already do not count, as the setting start says", zap.String("group", r.Group))
	return nil
}

// deadLettersThere returns a description of the dead-letter topic if it has a record that this program has
// written.
func (r *Resolver) deadLettersThere(ctx context.Context) (string, error) {
	topic := event.DeadLetterTopic(r.Topic)
	n, err := kafkaconn.TopicPartitions(ctx, r.Kafka, topic)
	if errors.Is(err, kafkaconn.ErrNoTopic) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	logs, err := kafkaconn.AllLogs(ctx, r.Kafka, topic, n)
	if err != nil {
		return "", err
	}
	for number, log := range logs {
		first, err := r.of(ledger.Partition{Topic: topic, Number: number}).FirstRecord(ctx, number, log, func(rec *recordbatch.Record) (ours bool) {
			rec.EachHeader(func(key, _ []byte) { ours = ours || string(key) == deadletter.HeaderReason })
			return ours
		})
		unread := errors.Is(err, kafka.TopicAuthorizationFailed) // the consumer requires only the right to write
		if err != nil && !unread {
			return "", err
		}
		if unread && log.End > log.Start || !unread && !first.None {
			return "topic " + topic + " has dead letters", nil
		}
	}
	return "", nil
}

// of returns a resolver of another partition.
func (r *Resolver) of(p ledger.Partition) *Resolver {
	other, named := *r, *r.Handle
	named.Partition, named.Field = p, p.String()
	other.Handle = &named
	return &other
}
