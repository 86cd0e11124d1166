package produce

// This file publishes records. The key determines a record's partition, and franz-go's idempotent producer
// sends it. If franz-go sends a record again because it got no response, the broker recognizes the sequence
// number. So each record is written once, and a member's events in order.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/units"
)

const (
	// linger is how long a record waits for others to form a batch. Kafka's own producer has used the same
	// value since 4.0.
	linger = 5 * time.Millisecond
	// publishMemory limits the memory of unacknowledged records, approximately.
	publishMemory = 64 * units.MiB
	// recordMemory is the approximate memory of a record in addition to its bytes.
	recordMemory = 256
	// largestBatch is the default limit of a topic: Kafka's message.max.bytes.
	largestBatch = 1_048_588
	// smallestBatch is the minimum that franz-go accepts, in bytes.
	smallestBatch = 512
	// closePatience is how long close waits for the other partitions after one has failed.
	closePatience = 5 * time.Second
)

// errGaveUp means that publishing has failed and no more records are accepted; Close returns the cause.
var errGaveUp = errors.New("publishing has failed")

// Options describes what a Publisher publishes to.
type Options struct {
	Kafka      *config.Kafka
	Topic      string
	Partitions int
	Limit      int           // the topic's max.message.bytes; 0: unknown
	Patience   time.Duration // how long a partition may acknowledge nothing
	Say        func(string)  // receives a line about a partition that acknowledges nothing; nil: it is not reported
}

// Publisher sends records to a topic, acknowledged by all in-sync replicas. One goroutine calls Publish and
// Close. franz-go calls recordEnded from a goroutine of its own, one record at a time.
type Publisher struct {
	Options

	client   *kgo.Client
	trouble  trouble
	lanes    []lane
	ids      []int // partition numbers, for the balancer
	balancer kafka.Murmur2Balancer
	turn     int // counter that spreads records without a key

	held atomic.Int64  // bytes of records without a result yet
	room chan struct{} // signalled when held falls below a threshold

	once    sync.Once
	err     error         // the first failure; set before failed is closed
	failed  chan struct{} // closed at the first failure
	watched sync.WaitGroup
	done    chan struct{} // closed to end watch

	events  atomic.Int64 // acknowledged
	bytes   atomic.Int64 // keys and values of acknowledged events
	refused atomic.Int64 // events that are certainly not in the log
	taken   int64        // events accepted by Publish
}

// lane counts the records of a partition.
type lane struct{ taken, acknowledged atomic.Int64 }

// Open starts publishing, or returns an error if this user may not publish.
func Open(ctx context.Context, o Options) (*Publisher, error) {
	p := &Publisher{
		Options: o, lanes: make([]lane, o.Partitions), balancer: kafka.Murmur2Balancer{Consistent: true},
		room: make(chan struct{}, 1), failed: make(chan struct{}), done: make(chan struct{}),
	}
	for id := range o.Partitions {
		p.ids = append(p.ids, id)
	}
	limit := largestBatch
	if o.Limit > 0 {
		limit = max(min(o.Limit, publishMemory), smallestBatch)
	}
	var err error
	p.client, err = app.NewProducer(o.Kafka, kgo.DefaultProduceTopic(o.Topic), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ProducerLinger(linger), kgo.ProducerBatchMaxBytes(int32(limit)), kgo.WithLogger(&p.trouble), kgo.WithHooks(&p.trouble))
	if err != nil {
		return nil, err
	}
	if err := app.MayPublishOnce(ctx, p.client); err != nil {
		p.client.Close()
		return nil, app.ExplainPublishing(ctx, err, o.Kafka, o.Topic)
	}
	p.watched.Go(p.watch)
	return p, nil
}

// Publish copies an event and hands it to the producer. It blocks while too many bytes are unacknowledged.
// An error means that it did not accept the event; Close returns the cause.
func (p *Publisher) Publish(ctx context.Context, key, value []byte) error {
	return p.add(ctx, outgoing{key: key, value: value})
}

// add copies a record and hands it to the producer. It blocks while too many bytes are unacknowledged. A
// nil key is no key. It returns an error only if it did not accept the record.
func (p *Publisher) add(ctx context.Context, o outgoing) error {
	for p.held.Load() > publishMemory {
		select {
		case <-p.room:
		case <-p.failed:
			return errGaveUp
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-p.failed:
		return errGaveUp
	default:
	}
	r := &kgo.Record{Partition: int32(p.lane(o.key)), Key: bytes.Clone(o.key), Value: bytes.Clone(o.value), Timestamp: o.at}
	for _, h := range o.headers {
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	p.held.Add(memoryOf(r))
	p.lanes[r.Partition].taken.Add(1)
	p.taken++
	p.client.Produce(context.Background(), r, p.recordEnded)
	return nil
}

// lane returns the partition of a key by the same function as Kafka's own producer, so that a member's
// events are in one partition whichever producer publishes them.
func (p *Publisher) lane(key []byte) int {
	if key == nil {
		p.turn++
		return p.turn % len(p.lanes)
	}
	return p.balancer.Balance(kafka.Message{Key: key}, p.ids...)
}

func memoryOf(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value) + recordMemory
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// Close sends the remaining records and returns once all are acknowledged, or the error that prevents it.
// If ctx ends, sending stops at once.
func (p *Publisher) Close(ctx context.Context) error {
	flushing, abandon := context.WithCancel(ctx)
	defer abandon()
	p.watched.Go(func() {
		select {
		case <-p.failed:
			// Other partitions may be about to acknowledge; after closePatience the rest is abandoned.
			select {
			case <-time.After(min(closePatience, p.Patience)):
			case <-p.done:
			}
			abandon()
		case <-p.done:
		}
	})
	err := p.client.Flush(flushing)
	p.client.Close()
	_ = p.client.Flush(context.WithoutCancel(ctx)) // waits until recordEnded has run for every record
	close(p.done)
	p.watched.Wait()
	select {
	case <-p.failed:
		err = p.err
	default:
		if p.unsure() == 0 {
			return nil
		}
	}
	return app.ExplainPublishing(ctx, err, p.Kafka, p.Topic)
}

// recordEnded handles the result of a record.
func (p *Publisher) recordEnded(r *kgo.Record, err error) {
	switch {
	case err == nil:
		p.events.Add(1)
		p.bytes.Add(int64(len(r.Key) + len(r.Value)))
		p.lanes[r.Partition].acknowledged.Add(1)
	case !errors.Is(err, kgo.ErrClientClosed): // close explains that error
		if errors.Is(err, kerr.MessageTooLarge) { // after another error, an earlier attempt may have been written
			p.refused.Add(1)
		}
		p.giveUp(p.failure(r, err))
	}
	size := memoryOf(r)
	const few = publishMemory * 3 / 4
	if left := p.held.Add(-size); left <= few && left+size > few {
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
}

// failure returns the error for a record that was not published.
func (p *Publisher) failure(r *kgo.Record, err error) error {
	if !errors.Is(err, kerr.MessageTooLarge) {
		return fmt.Errorf("publish to %s/%d: %w", p.Topic, r.Partition, err)
	}
	line := fmt.Sprintf("an event of %d bytes is more than topic %s takes (its max.message.bytes)", len(r.Key)+len(r.Value), p.Topic)
	if p.Limit == 0 {
		line = fmt.Sprintf("an event or batch exceeds the limit of topic %s, or %d bytes; its max.message.bytes is unknown, "+
			"as this user has no right to DescribeConfigs the topic; with it, batches are made to fit", p.Topic, largestBatch)
	}
	return &app.KafkaError{Line: line, Err: err}
}

func (p *Publisher) giveUp(err error) {
	p.once.Do(func() {
		p.err = err
		close(p.failed)
	})
}

// unsure returns the number of events that were handed over but may or may not be in the log. It is for the
// caller of Close.
func (p *Publisher) unsure() int64 { return p.taken - p.events.Load() - p.refused.Load() }

// Acknowledged returns the number of acknowledged events.
func (p *Publisher) Acknowledged() int64 { return p.events.Load() }
