package produce

// Publishing: records go to the partition of their key, and from there by franz-go's
// idempotent producer. What it sends again for want of an answer the broker knows by its
// sequence number, so a record is written once, and a member's events in their order.

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
	// linger is how long a record waits for company: what Kafka's own producer
	// waits since 4.0.
	linger = 5 * time.Millisecond
	// publishMemory bounds the records that aren't acknowledged, about.
	publishMemory = 64 * units.MiB
	// recordMemory is about what a record takes beside its bytes.
	recordMemory = 256
	// largestBatch is what a topic takes that isn't set up otherwise: Kafka's
	// message.max.bytes.
	largestBatch = 1_048_588
	// closePatience is how long the other partitions may take once one has failed.
	closePatience = 5 * time.Second
)

// errGaveUp says that nothing more is taken, for a reason that close returns.
var errGaveUp = errors.New("publishing has failed")

// Publisher sends records to a topic, acknowledged by all in-sync replicas. add and close
// are for one goroutine; franz-go calls recordEnded from one of its own, one record at a time.
type Publisher struct {
	kafka    *config.Kafka
	topic    string
	limit    int // the topic's max.message.bytes; 0 is not known
	patience time.Duration

	client   *kgo.Client
	trouble  trouble
	lanes    []lane
	ids      []int // of the lanes, for the balancer
	balancer kafka.Murmur2Balancer
	turn     int // of the next record without a key

	held atomic.Int64  // bytes of records that haven't ended
	room chan struct{} // signalled once they have become few

	once    sync.Once
	err     error         // of the first failure, once failed is closed
	failed  chan struct{} // closed with the first failure
	watched sync.WaitGroup
	done    chan struct{} // ends the watching

	events  atomic.Int64 // acknowledged
	bytes   atomic.Int64 // of their keys and values
	refused atomic.Int64 // events that are not in the log
	taken   int64        // by add
}

// lane is a partition's counts.
type lane struct{ taken, acknowledged atomic.Int64 }

// open makes the producer, and returns an error where it may not publish. What is open is
// begun, and closed by close.
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

// smallestBatch is the least that franz-go takes.
const smallestBatch = 512

// add copies a record and hands it over, and waits where too much isn't acknowledged. A nil
// key is no key. It returns an error only when the record wasn't taken.
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

// lane is where a key goes: as Kafka's own producer has it, so that a member's
// events meet in one partition whoever publishes them.
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

// close sends what is left and returns once all is acknowledged, or why it isn't. ctx ends
// the sending at once, acknowledged or not.
func (p *Publisher) close(ctx context.Context) error {
	flushing, abandon := context.WithCancel(ctx)
	defer abandon()
	p.watched.Go(func() {
		select {
		case <-p.failed:
			// Others may be about to be acknowledged; those that can't be are let go.
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
	_ = p.client.Flush(context.WithoutCancel(ctx)) // until recordEnded has run for every record
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

// Open begins to publish to a topic, for a program that makes its own events.
func Open(ctx context.Context, there *config.Kafka, topic string, partitions int, patience time.Duration) (*Publisher, error) {
	p := &Publisher{kafka: there, topic: topic, patience: patience}
	if err := p.open(ctx, partitions); err != nil {
		return nil, app.ExplainPublishing(ctx, err, there, topic)
	}
	p.begin(func(string) {})
	return p, nil
}

// Publish copies an event and hands it over; it waits while too much isn't acknowledged. An
// error says that it wasn't taken, and Close why.
func (p *Publisher) Publish(ctx context.Context, key, value []byte) error {
	return p.add(ctx, outgoing{key: key, value: value})
}

// Acknowledged is how many events were published.
func (p *Publisher) Acknowledged() int64 { return p.events.Load() }

// Close returns once all is acknowledged, or why it isn't.
func (p *Publisher) Close(ctx context.Context) error {
	return app.ExplainPublishing(ctx, p.close(ctx), p.kafka, p.topic)
}
