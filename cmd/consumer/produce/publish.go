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
	// closePatience is how long close waits for the other partitions after one has failed.
	closePatience = 5 * time.Second
)

// errGaveUp means that publishing has failed and no more records are accepted; close returns the cause.
var errGaveUp = errors.New("publishing has failed")

// Publisher sends records to a topic, acknowledged by all in-sync replicas. One goroutine calls add and
// close. franz-go calls recordEnded from a goroutine of its own, one record at a time.
type Publisher struct {
	kafka    *config.Kafka
	topic    string
	limit    int // the topic's max.message.bytes; 0: unknown
	patience time.Duration

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
	taken   int64        // events accepted by add
}

// lane counts the records of a partition.
type lane struct{ taken, acknowledged atomic.Int64 }

// open creates the producer, and returns an error if it may not publish. After a successful open, call
// begin and later close.
func (p *Publisher) open(ctx context.Context, partitions int) error {
	p.balancer.Consistent = true
	p.lanes = make([]lane, partitions)
	for id := range partitions {
		p.ids = append(p.ids, id)
	}
	p.room, p.failed, p.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	limit := largestBatch
	if p.limit > 0 {
		limit = min(p.limit, publishMemory)
	}
	var err error
	p.client, err = app.NewProducer(p.kafka, kgo.DefaultProduceTopic(p.topic), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ProducerLinger(linger), kgo.ProducerBatchMaxBytes(int32(max(limit, smallestBatch))), kgo.WithLogger(&p.trouble), kgo.WithHooks(&p.trouble))
	if err != nil {
		return err
	}
	if err := app.MayPublishOnce(ctx, p.client); err != nil {
		p.client.Close()
		return err
	}
	return nil
}

// smallestBatch is the minimum that franz-go accepts, in bytes.
const smallestBatch = 512

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

// close sends the remaining records and returns once all are acknowledged, or the error that prevents it.
// If ctx ends, sending stops at once.
func (p *Publisher) close(ctx context.Context) error {
	flushing, abandon := context.WithCancel(ctx)
	defer abandon()
	p.watched.Go(func() {
		select {
		case <-p.failed:
			// Other partitions may be about to acknowledge; after closePatience the rest is abandoned.
			select {
			case <-time.After(min(closePatience, p.patience)):
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
		return p.err
	default:
	}
	if err != nil && p.unsure() > 0 {
		return fmt.Errorf("publish to %s: %w", p.topic, err)
	}
	return nil
}

// Open starts publishing to a topic, for a command that makes its own events.
func Open(ctx context.Context, there *config.Kafka, topic string, partitions int, patience time.Duration) (*Publisher, error) {
	p := &Publisher{kafka: there, topic: topic, patience: patience}
	if err := p.open(ctx, partitions); err != nil {
		return nil, app.ExplainPublishing(ctx, err, there, topic)
	}
	p.begin(func(string) {})
	return p, nil
}

// Publish copies an event and hands it to the producer. It blocks while too many bytes are unacknowledged.
// An error means that it did not accept the event; Close returns the cause.
func (p *Publisher) Publish(ctx context.Context, key, value []byte) error {
	return p.add(ctx, outgoing{key: key, value: value})
}

// Acknowledged returns the number of acknowledged events.
func (p *Publisher) Acknowledged() int64 { return p.events.Load() }

// Close returns once all events are acknowledged, or the error that prevents it.
func (p *Publisher) Close(ctx context.Context) error {
	return app.ExplainPublishing(ctx, p.close(ctx), p.kafka, p.topic)
}
