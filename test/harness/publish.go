package harness

// Publishing, by a client that the consumer doesn't use.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Published is a record that Kafka has committed, as the broker keeps it.
type Published struct {
	Partition  int
	Offset     int64
	Time       int64 // Unix ms
	Key, Value []byte
	Headers    []kgo.RecordHeader
	// Overflow says that the test expects it to be refused for its points: which
	// events are depends on the order, so an oracle can't tell.
	Overflow bool
}

// Record is a record with a value for a partition, as of now.
func Record(partition int, value string) *kgo.Record {
	return &kgo.Record{Partition: int32(partition), Value: []byte(value), Timestamp: now()}
}

// now is cut to what a record carries.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// Publish publishes records to the partitions they name, in order, and returns when
// all are acknowledged. What is published here is what the standings must come to.
func (p *Place) Publish(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.PublishAll(ctx, records...); err != nil {
		t.Fatal(err)
	}
}

// PublishAll is Publish for a goroutine other than the test's.
func (p *Place) PublishAll(ctx context.Context, records ...*kgo.Record) error {
	return p.PublishBy(ctx, p.client, records...)
}

// PublishBy is PublishAll by a client of the test's, with a codec of its own for
// instance. It has to partition by hand (kgo.ManualPartitioner).
func (p *Place) PublishBy(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	err := p.produce(ctx, client, records...)
	if err == nil {
		p.Expect(records...)
	}
	return err
}

// produce publishes without expecting anything.
func (p *Place) produce(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	all.Add(len(records))
	for _, r := range records {
		r.Topic = p.Topic
		client.Produce(ctx, r, func(r *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				if len(failed) < 3 {
					failed = append(failed, fmt.Errorf("publish to %s/%d: %w", r.Topic, r.Partition, err))
				}
				mu.Unlock()
			}
			all.Done()
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// Expect takes records that are committed as events that have to count: those of a
// transaction, once it is. They carry their offsets.
func (p *Place) Expect(records ...*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		p.published = append(p.published, Published{
			Partition: int(r.Partition), Offset: r.Offset, Time: r.Timestamp.UnixMilli(),
			Key: r.Key, Value: r.Value, Headers: r.Headers,
		})
	}
}

// Published is all that was published so far.
func (p *Place) Published() []Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Published(nil), p.published...)
}
