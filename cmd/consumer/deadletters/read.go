package deadletters

// Reading dead-letter topics: a partition at a time, at read_committed, up to the end as
// of the start, and no more of it in memory than a response.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

const (
	// letterPatience is how long a partition may bring nothing before it is given up.
	letterPatience = 30 * time.Second
	// largestLetter is the longest record that is shown, in bytes. Kafka's limits are
	// lower.
	largestLetter = 64 * units.MiB
)

// letterReader reads the letters of some topics.
type letterReader struct {
	kafka  *config.Kafka
	client *kafka.Client
	parts  []letterPart
	total  int64        // offsets to go through
	passed atomic.Int64 // of them
	none   []string     // topics that nothing was ever dead-lettered of
	short  []string     // what says of a topic that it hasn't the partition
	note   func(string) // shows a line to who waits; nil: nobody
	slowed bool         // it was shown that a quota slows this down
}

// letterPart is a stretch of a dead-letter topic's partition.
type letterPart struct {
	dlq       string
	partition int
	from, end int64
}

// letterScope is what of a topic is read. A nil partition is all.
type letterScope struct {
	topics    []string // the sources
	partition *int
	since     time.Time // zero is from the first letter on
	needed    bool      // a topic without a dead-letter topic, or the partition, is an error
}

// openLetters finds what there is to read. Whoever called it closes the reader.
func openLetters(ctx context.Context, c *config.Kafka, scope letterScope) (*letterReader, error) {
	var dlqs []string
	for _, topic := range scope.topics {
		dlqs = append(dlqs, ingest.DeadLetterTopic(topic))
	}
	client, err := clients.NewKafka(c, dlqs...)
	if err != nil {
		return nil, err
	}
	r := &letterReader{kafka: c, client: client}
	for i, topic := range scope.topics {
		if err := r.find(ctx, topic, dlqs[i], scope); err != nil {
			r.close()
			if ctx.Err() != nil {
				return nil, errInterrupted
			}
			return nil, clients.ExplainKafka(ctx, err, c, dlqs[i])
		}
	}
	if len(r.parts) == 0 && len(r.short) > 0 {
		r.close()
		return nil, noPartition(r.short...)
	}
	return r, nil
}

// noPartition is an error of topics that haven't the partition that was asked for.
func noPartition(lines ...string) error {
	return &clients.KafkaError{Line: strings.Join(lines, ", "), Err: clients.ErrNoTopic}
}

var errInterrupted = errors.New("interrupted")

func (r *letterReader) close() { clients.CloseKafka(r.client) }

func (r *letterReader) find(ctx context.Context, topic, dlq string, scope letterScope) error {
	n, err := clients.TopicPartitions(ctx, r.client, dlq)
	if errors.Is(err, clients.ErrNoTopic) && !scope.needed {
		r.none = append(r.none, topic)
		return nil
	}
	if err != nil {
		return err
	}
	read := ingest.Right{Operation: kafka.ACLOperationTypeRead, Topic: dlq, For: "to read dead letters"}
	missing, err := ingest.Missing(ctx, r.client, []ingest.Right{read})
	if err == nil {
		err = ingest.Required(missing)
	}
	if err != nil {
		return err
	}
	if scope.partition != nil && *scope.partition >= n {
		line := fmt.Sprintf("%s has no partition %d: it has %d", dlq, *scope.partition, n)
		if scope.needed {
			return noPartition(line)
		}
		r.short = append(r.short, line) // another topic may have it
		return nil
	}
	logs, err := ingest.Logs(ctx, r.client, dlq, n)
	if err != nil {
		return err
	}
	for p, log := range logs {
		if scope.partition != nil && *scope.partition != p {
			continue
		}
		part := letterPart{dlq, p, log.Start, log.End}
		if !scope.since.IsZero() {
			if part.from, err = r.firstSince(ctx, part, scope.since); err != nil {
				return err
			}
		}
		r.parts = append(r.parts, part)
		r.total += max(0, part.end-part.from)
	}
	return nil
}

// firstSince is the first offset with a record of that time or later, the end where there
// is none.
func (r *letterReader) firstSince(ctx context.Context, part letterPart, since time.Time) (int64, error) {
	answer, err := r.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics:         map[string][]kafka.OffsetRequest{part.dlq: {kafka.TimeOffsetOf(part.partition, since)}},
		IsolationLevel: kafka.ReadCommitted,
	})
	if err != nil {
		return 0, fmt.Errorf("list the offsets of %s/%d: %w", part.dlq, part.partition, err)
	}
	first := part.end
	for _, o := range answer.Topics[part.dlq] {
		if o.Error != nil {
			return 0, fmt.Errorf("list the offsets of %s/%d: %w", part.dlq, part.partition, o.Error)
		}
		for offset := range o.Offsets {
			if offset >= 0 {
				first = min(first, max(offset, part.from))
			}
		}
	}
	return first, nil
}

// each gives all letters to take, one topic and partition after the other, in the order
// of their offsets. A letter's bytes hold until take returns.
func (r *letterReader) each(ctx context.Context, take func(*deadLetter) error) error {
	for _, part := range r.parts {
		if err := r.read(ctx, part, take); err != nil {
			if mine, ok := errors.AsType[*takeError](err); ok {
				return mine.error
			}
			if ctx.Err() != nil {
				return errInterrupted
			}
			return clients.ExplainKafka(ctx, err, r.kafka, part.dlq)
		}
	}
	return nil
}

func (r *letterReader) read(ctx context.Context, part letterPart, take func(*deadLetter) error) error {
	f := &fetch.Fetcher{Transport: r.client.Transport, Addr: r.client.Addr, ClientID: connect.ClientID, Topic: part.dlq, Partition: part.partition}
	defer func() { // bounded by what a call that was given up may still take
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
		defer cancel()
		_ = f.Drop(ctx)
	}()
	records := &recordbatch.Reader{MaxRecord: largestLetter}
	defer records.Close()
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(letterPatience))
	for at := part.from; at < part.end; {
		if err := ctx.Err(); err != nil { // a fetch may still be answered
			return err
		}
		next, throttled, err := r.response(ctx, f, records, part, at, take)
		if throttled { // the broker has answered, and has records
			wait.Reset()
		}
		switch {
		case errors.As(err, new(*takeError)):
			return err
		case errors.Is(err, kafka.OffsetOutOfRange):
			if next, err = r.afterRetention(ctx, part, at); err != nil {
				return err
			}
		case err != nil && (ctx.Err() != nil || damaged(err) || ingest.Meaning(err) != ledger.Retry):
			return err
		}
		if next > at {
			r.passed.Add(min(next, part.end) - at)
			at = next
			wait.Reset()
			continue
		}
		if throttled && err == nil { // the next fetch waits for that
			continue
		}
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			if err == nil {
				err = errors.New("the broker sends no records, though there are some")
			}
			return fmt.Errorf("read %s/%d from offset %d: %w", part.dlq, part.partition, at, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// takeError is an error of whoever takes the letters, not of Kafka.
type takeError struct{ error }

// response reads one response, and returns where the next begins. A quota may have the
// broker answer nothing but when it is to be asked again.
func (r *letterReader) response(ctx context.Context, f *fetch.Fetcher, records *recordbatch.Reader, part letterPart, at int64, take func(*deadLetter) error) (next int64, throttled bool, err error) {
	answer, err := f.Fetch(ctx, at)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return at, false, err
	}
	defer answer.Release()
	if answer.Throttled > 0 {
		r.slow()
	}
	if !answer.Answered() {
		return at, answer.Throttled > 0, nil
	}
	records.Reset(answer.Records, at, answer.Aborted)
	for {
		rec, err := records.Next()
		switch {
		case errors.Is(err, io.EOF), err == nil && rec.Offset >= part.end:
			return records.Position(), false, nil
		case err != nil:
			return at, false, fmt.Errorf("read %s/%d: %w", part.dlq, part.partition, err)
		}
		if err := take(readLetter(part.dlq, part.partition, rec)); err != nil {
			return at, false, &takeError{err}
		}
	}
}

// slow says once that a quota slows the reading down.
func (r *letterReader) slow() {
	if r.note != nil && !r.slowed {
		r.note("note: a quota of Kafka's (consumer_byte_rate of this user or of client id " + connect.ClientID + ") slows this down")
	}
	r.slowed = true
}

// damaged reports whether the log itself can't be read: asking again wouldn't help.
func damaged(err error) bool {
	return slices.ContainsFunc([]error{recordbatch.ErrCorrupt, recordbatch.ErrTruncated, recordbatch.ErrTooLarge, fetch.ErrTooLarge, fetch.ErrVersion, fetch.ErrMalformed},
		func(e error) bool { return errors.Is(err, e) })
}

// afterRetention is where to go on where the log was cut while it was read.
func (r *letterReader) afterRetention(ctx context.Context, part letterPart, at int64) (int64, error) {
	answer, err := r.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{part.dlq: {kafka.FirstOffsetOf(part.partition)}}, IsolationLevel: kafka.ReadCommitted,
	})
	if err != nil {
		return at, fmt.Errorf("list the offsets of %s/%d: %w", part.dlq, part.partition, err)
	}
	for _, o := range answer.Topics[part.dlq] {
		if o.Error != nil {
			return at, fmt.Errorf("list the offsets of %s/%d: %w", part.dlq, part.partition, o.Error)
		}
		at = max(at, o.FirstOffset)
	}
	return at, nil
}
