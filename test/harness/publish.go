package harness

// Publishing, by a client that the consumer doesn't use.

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/oracle"
)

// Published is a committed record, as the broker keeps it.
type Published struct {
	Partition  int
	Offset     int64
	Time       int64 // Unix ms
	Key, Value []byte
	Headers    []kgo.RecordHeader
	Overflow   bool // it is expected to be refused for its points
	// WithoutValue allows its dead letter to have no value, for its size.
	WithoutValue bool
}

// Record is a record with a value for a partition, as of now.
func Record(partition int, value string) *kgo.Record {
	return &kgo.Record{Partition: int32(partition), Value: []byte(value), Timestamp: now()}
}

// now is cut to what a record carries.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// OfToday is a time, or the beginning of now's day in UTC where that is later: what is of
// one day is of one week, month and year, whenever a test is run.
func OfToday(at, now time.Time) time.Time {
	if day := now.UTC().Truncate(24 * time.Hour); at.Before(day) {
		return day
	}
	return at
}

// Publish publishes records to the partitions they name, in order, and returns when
// all are acknowledged. What is published here is what Check looks for.
func (p *Place) Publish(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.Produce(t, records...)
	p.Expect(t, records...)
}

// Produce publishes records without expecting them to count: those before a start at
// the log's end, for instance.
func (p *Place) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.ProduceBy(t, p.client, records...)
}

// ProduceBy is Produce by a client of the test's, with a codec of its own for instance.
// The client has to partition by hand (kgo.ManualPartitioner).
func (p *Place) ProduceBy(t testing.TB, client *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.produce(ctx, client, records...); err != nil {
		t.Fatal(err)
	}
}

// PublishAll is Publish for a goroutine other than the test's.
func (p *Place) PublishAll(ctx context.Context, records ...*kgo.Record) error {
	err := p.produce(ctx, p.client, records...)
	if err == nil {
		p.Expect(p.test, records...)
	}
	return err
}

func (p *Place) produce(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	var failed error
	var all sync.WaitGroup
	all.Add(len(records))
	for _, r := range records {
		r.Topic = p.Topic
		client.Produce(ctx, r, func(r *kgo.Record, err error) { // one at a time
			if err != nil && failed == nil {
				failed = fmt.Errorf("publish to %s/%d: %w", r.Topic, r.Partition, err)
			}
			all.Done()
		})
	}
	all.Wait()
	return failed
}

// Stream publishes one record and takes it as Publish does once it is acknowledged,
// without waiting for that: a full buffer alone makes it wait. Await ends it. It may
// be called from any goroutine.
func (p *Place) Stream(ctx context.Context, t testing.TB, r *kgo.Record) {
	t.Helper()
	r.Topic = p.Topic
	p.streaming.Add(1)
	p.client.Produce(ctx, r, func(r *kgo.Record, err error) {
		defer p.streaming.Done()
		if err != nil {
			t.Errorf("publish to %s/%d: %v", r.Topic, r.Partition, err)
			return
		}
		p.Expect(t, r)
	})
}

// Await waits until all that was streamed is acknowledged.
func (p *Place) Await() { p.streaming.Wait() }

// Expect takes committed records as ones that have to count, or to be dead-lettered:
// those of a transaction, once it is committed. They carry their offsets.
func (p *Place) Expect(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.expect(t, false, records...)
}

// ExpectOverflow takes committed records as ones that are refused for their points.
func (p *Place) ExpectOverflow(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.expect(t, true, records...)
}

func (p *Place) expect(t testing.TB, overflow bool, records ...*kgo.Record) {
	t.Helper()
	o := p.Oracle(t)
	for _, r := range records {
		overflow := overflow || overflows(r)
		q := Published{
			Partition: int(r.Partition), Offset: r.Offset, Time: r.Timestamp.UnixMilli(),
			Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Headers: r.Headers, Overflow: overflow,
			WithoutValue: r.Context != nil && r.Context.Value(withoutValue{}) != nil,
		}
		record := q.asRecord()
		record.Without = p.without(oracle.At{Partition: q.Partition, Offset: q.Offset}, q.Value)
		bad := o.Add(record) != ""
		p.mu.Lock()
		if bad {
			p.bad[oracle.At{Partition: q.Partition, Offset: q.Offset}] = q
		}
		if !p.forgetful {
			p.published = append(p.published, q)
		}
		p.mu.Unlock()
	}
}

func (q Published) asRecord() oracle.Record {
	return oracle.Record{Partition: q.Partition, Offset: q.Offset, Time: q.Time, Value: q.Value, Headers: Headers(q.Headers), Overflow: q.Overflow}
}

// Headers are a record's headers as the oracle takes them.
func Headers(all []kgo.RecordHeader) []oracle.Header {
	var headers []oracle.Header
	for _, h := range all {
		headers = append(headers, oracle.Header{Key: h.Key, Value: h.Value})
	}
	return headers
}

// Published is all that has to count and was published so far.
func (p *Place) Published() []Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remembers()
	return slices.Clone(p.published)
}

func (p *Place) remembers() {
	if p.forgetful {
		panic("harness: a forgetful place doesn't know what was published")
	}
}

type withoutValue struct{}

// WithoutValue marks a bad record as one whose dead letter may have no value, since
// the broker refuses it for its size.
func WithoutValue(r *kgo.Record) *kgo.Record {
	r.Context = context.WithValue(context.Background(), withoutValue{}, true)
	return r
}

// original is the bad record at an offset, as it was published.
func (p *Place) original(at oracle.At) Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bad[at]
}

// Oracle is what the records that were published here come to, under the settings that
// the place has when it is first asked for.
func (p *Place) Oracle(t testing.TB) *oracle.Oracle {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expected == nil {
		p.expected = oracle.New(OracleConfig(t, p.Settings))
	}
	return p.expected
}
