package source

// This file turns errors into waits, if they may be transient, or into halts that name the remedy.

import (
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// HaltOf turns a permanent error into a halt.
func HaltOf(err error, field string, standings interface{ Classify(error) ledger.Verdict }) error {
	if _, ok := errors.AsType[*health.Halt](err); ok || err == nil {
		return err
	}
	if _, ok := errors.AsType[kafka.Error](err); ok && kafkaconn.Classify(err) == ledger.Halt {
		return &health.Halt{Reason: health.HaltKafka, What: fmt.Sprintf("%s: %v", field, err), Remedy: "see that this user may read the topic and its group, and that the broker is of version 2.3 or later"}
	}
	if standings.Classify(err) == ledger.Halt {
		return &health.Halt{Reason: health.HaltRedis, What: fmt.Sprintf("%s: %v", field, err), Remedy: "fix what Redis names"}
	}
	return err
}

// HaltOfFetch turns an error of a fetch into a halt if retrying can't help.
func HaltOfFetch(err error, field string, offset int64) error {
	switch {
	case errors.Is(err, fetch.ErrTooLarge):
		return &health.Halt{Reason: health.HaltTooLarge, What: fmt.Sprintf("what Kafka sends of %s at offset %d: %v", field, offset, err),
			Remedy: "raise fold_memory to sixteen times that size or more"}
	case errors.Is(err, fetch.ErrVersion), errors.Is(err, fetch.ErrMalformed):
		return &health.Halt{Reason: health.HaltKafka, What: err.Error(), Remedy: "use a Kafka broker of version 2.3 or later"}
	}
	return err
}

// Passes reports whether an error of a fetch is transient, so that the caller retries.
func Passes(err error) bool {
	_, halt := errors.AsType[*health.Halt](err)
	return !halt && !errors.Is(err, kafka.OffsetOutOfRange) && kafkaconn.Classify(err) == ledger.Retry
}

// HaltOfRecords turns an error of reading records into a halt, if it is permanent.
func HaltOfRecords(err error, p ledger.Partition, records *recordbatch.Reader) error {
	name := fmt.Sprintf("%v after offset %d: %v", p, records.Position(), err)
	switch {
	case errors.As(err, new(*recordbatch.OldFormatError)):
		return &health.Halt{Reason: health.HaltFormat, What: fmt.Sprintf("%v at offset %d: %v", p, records.Position(), err), Remedy: oldFormatRemedy}
	case !errors.Is(err, recordbatch.ErrCorrupt) && !errors.Is(err, recordbatch.ErrTruncated):
		return err
	}
	return &health.Halt{Reason: health.HaltFormat, What: name, Remedy: "check the broker's disk and what is between it and here; if the record is lost, delete the log up to the offset after it (kafka-delete-records) and set on_gap: continue"}
}

// oldFormatRemedy names no conversion, because no tool or setting rewrites a log in place without losing
// records: message.format.version applies to what producers send, a replica receives the leader's bytes, and
// compaction keeps formats before Kafka 4, and from Kafka 4 on keeps only the last event of each key.
const oldFormatRemedy = "either copy the topic, times too, to a new one and read that under another redis.prefix and kafka.group, " +
	"or do without those events: delete the log up to the first batch of format 2 (kafka-dump-log shows each batch's magic, kafka-delete-records deletes) and set on_gap: continue. " +
	"No setting rewrites a log: message.format.version is for new records, and has to be 0.11.0 or later where brokers have it"
