package harness

// This file publishes with a client that the consumer does not use.

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

// Published is a committed record as the broker stores it.
type Published struct {
	Partition  int
	Offset     int64
	Time       int64 // Unix ms
	Key, Value []byte
	Headers    []kgo.RecordHeader
	Overflow   bool // expected to be refused because of its points
}

// Record returns a record with a value for a partition, with the current time.
func Record(partition int, value string) *kgo.Record {
	return &kgo.Record{Partition: int32(partition), Value: []byte(value), Timestamp: now()}
}

// now returns the current time, cut to the ms of a record's time.
func now() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

// ofToday returns at, or the start of now's day in UTC if that is later: times of one day are in one week,
// month and year, whenever a test runs.
func ofToday(at, now time.Time) time.Time {
	if day := now.UTC().Truncate(24 * time.Hour); at.Before(day) {
		return day
	}
	return at
}

// Publish publishes records to their partitions, in order, and returns when all are acknowledged. Check
// expects the records that are published here.
func (p *Place) Publish(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.Produce(t, records...)
	p.Expect(t, records...)
}

// Produce publishes records without expecting them to count, for example those before a start at the log's
// end.
func (p *Place) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.ProduceBy(t, p.client, records...)
}

// ProduceBy is Produce with a client of the test's, for example with another codec. The client must use
// kgo.ManualPartitioner.
func (p *Place) ProduceBy(t testing.TB, client *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.produce(ctx, client, records...); err != nil {
		t.Fatal(err)
	}
}

func (p *Place) produce(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	var failed error
	var all sync.WaitGroup
	all.Add(len(records))
	for _, r := range records {
		r.Topic = p.Topic
		client.Produce(ctx, r, func(r *kgo.Record, err error) { // the callbacks run one at a time
			if err != nil && failed == nil {
				failed = fmt.Errorf("publish to %s/%d: %w", r.Topic, r.Partition, err)
			}
			all.Done()
		})
	}
	all.Wait()
	return failed
}

// Stream publishes one record without waiting, unless the buffer is full. Once it is acknowledged, Check
// expects it. Call Await at the end. Any goroutine may call Stream.
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

// Await waits until all streamed records are acknowledged.
func (p *Place) Await() { p.streaming.Wait() }

// Expect makes Check expect committed records, to count or to be dead-lettered: for example those of a
// transaction, once it is committed. The records must have offsets.
func (p *Place) Expect(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	p.expect(t, false, records...)
}

// ExpectOverflow makes Check expect committed records to be refused because of their points.
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

// Headers converts a record's headers for the oracle.
func Headers(all []kgo.RecordHeader) []oracle.Header {
	var headers []oracle.Header
	for _, h := range all {
		headers = append(headers, oracle.Header{Key: h.Key, Value: h.Value})
	}
	return headers
}

// Published returns all expected records so far.
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

// original returns the published bad record at an offset.
func (p *Place) original(at oracle.At) Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bad[at]
}

// Oracle returns the oracle for the records that were published here, with the settings that the place has
// at the first call.
func (p *Place) Oracle(t testing.TB) *oracle.Oracle {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expected == nil {
		p.expected = oracle.New(oracleConfig(t, p.Settings))
	}
	return p.expected
}
