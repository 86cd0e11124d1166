package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// write tries until the records are acknowledged, the context ends, or tries has passed. If the broker refuses
// a set for its size, write sends its records one by one, and a record that is refused again without its value.
func (w *Writer) write(ctx context.Context, deadLetters []deadLetter) error {
	if err := w.heed(ctx); err != nil {
		return err
	}
	wait, began := retry.ForEver.Start(), time.Now()
	for tried := 1; ; tried++ {
		err := w.produce(ctx, deadLetters)
		switch {
		case err == nil:
			w.outbox.Count.Add(int64(len(deadLetters)))
			w.waits(nil)
			w.gotOn = w.Written.acknowledged(deadLetters)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		switch kafkaconn.Classify(err) {
		case ledger.DeadLetter:
			return w.refused(ctx, deadLetters, err)
		case ledger.Retry:
			err = &health.Waiting{Reason: health.WaitsDeadLetters, Err: err, Remedy: "check that topic " + event.DeadLetterTopic(w.outbox.Topic) + " exists and has as many replicas in sync as it needs; it goes on by itself"}
			w.waits(err)
			if w.Once || tried > 1 && time.Since(began) >= tries {
				return w.failing(deadLetters, err)
			}
			w.outbox.Tries.Add(1)
			if err := wait.Next(ctx); err != nil {
				return err
			}
			if err := w.heed(ctx); err != nil {
				return w.failing(deadLetters, err)
			}
		default:
			return w.failing(deadLetters, &health.Halt{Reason: health.HaltKafka,
				What:   fmt.Sprintf("the dead letters of %s/%d can't be written to %s: %v", w.outbox.Topic, w.outbox.Number, event.DeadLetterTopic(w.outbox.Topic), err),
				Remedy: deadLetterRemedy(event.DeadLetterTopic(w.outbox.Topic), err)})
		}
	}
}

// failing keeps one of the dead letters, so that Retry can probe the topic with it alone.
func (w *Writer) failing(deadLetters []deadLetter, err error) error {
	w.outbox.keep(deadLetters[0])
	return err
}

// deadLetterRemedy returns the remedy for a permanent error of a dead-letter topic.
func deadLetterRemedy(topic string, err error) string {
	switch {
	case errors.Is(err, kafka.InvalidTimestamp):
		return "compare this machine's clock with the brokers', which take a dead letter's time, that of its writing, for too far from theirs; " +
			"or raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of " + topic
	case errors.Is(err, kafka.InvalidRecord):
		return "set cleanup.policy=delete on " + topic + ": a compacted topic refuses records without a key, and keeps only the last of equal keys"
	}
	return "let this user write to that topic"
}

func (w *Writer) refused(ctx context.Context, deadLetters []deadLetter, cause error) error {
	// The broker's quota also charges refused writes. If the flow ended here for the quota, the next flow would
	// be refused in the same way, so this waits longer instead. See heed for the maximum.
	defer func(patience time.Duration) { w.Patience = patience }(w.Patience)
	w.Patience = fetch.MaxThrottle
	if len(deadLetters) > 1 {
		for i := range deadLetters {
			if err := w.write(ctx, deadLetters[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	l := deadLetters[0]
	if !l.strip(fmt.Sprintf("the broker refused it: %v", cause)) {
		return w.failing(deadLetters, &health.Halt{Reason: health.HaltKafka,
			What:   fmt.Sprintf("%s refuses even the headers of a dead letter of %s/%d: %v", event.DeadLetterTopic(w.outbox.Topic), w.outbox.Topic, w.outbox.Number, cause),
			Remedy: "raise max.message.bytes of that topic"})
	}
	return w.write(ctx, []deadLetter{l})
}

func (w *Writer) produce(ctx context.Context, deadLetters []deadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, w.outbox.Timeout)
	defer cancel()
	records := make([]kafka.Record, len(deadLetters))
	for i, l := range deadLetters {
		records[i] = kafka.Record{Time: l.time, Key: kafka.NewBytes(l.key), Value: kafka.NewBytes(l.value), Headers: l.headers}
	}
	r, err := w.outbox.Client.Produce(ctx, &kafka.ProduceRequest{
		Topic: event.DeadLetterTopic(w.outbox.Topic), Partition: w.outbox.Number, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(records...),
		// Gzip takes the least memory, and bad records are often similar.
		Compression: kafka.Gzip,
	})
	if err == nil {
		w.outbox.quota.leaveAlone(r.Throttle)
		err = r.Error
	}
	if err == nil {
		for _, e := range r.RecordErrors {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("write %d dead letters to %s/%d: %w", len(deadLetters), event.DeadLetterTopic(w.outbox.Topic), w.outbox.Number, err)
	}
	return nil
}

// heed waits while a quota throttles the client, with everything that the flow holds, but no longer than
// Patience. If more time is left, it ends the flow. If others want the memory that the flow holds, and the flow
// has written a set and waited for a minute in total, the patience falls to tries: the next flow continues
// after that set.
func (w *Writer) heed(ctx context.Context) error {
	left := w.outbox.quota.left()
	if left <= 0 {
		return nil
	}
	err := &health.Waiting{Reason: health.WaitsDeadLetters,
		Err:    fmt.Errorf("a quota of Kafka's holds back the dead letters of %s/%d for another %v", w.outbox.Topic, w.outbox.Number, left.Round(time.Millisecond)),
		Remedy: "raise the quota (producer_byte_rate) of this user or of client id standings if that is too slow; it goes on by itself"}
	patience := w.Patience
	if w.gotOn && w.waited >= fetch.MaxThrottle && w.Wanted != nil && w.Wanted() {
		patience = min(patience, tries)
	}
	if left > patience {
		w.outbox.quota.end()
		return err
	}
	if left > tries {
		w.waits(err)
	}
	w.waited += left
	return retry.Sleep(ctx, left)
}
