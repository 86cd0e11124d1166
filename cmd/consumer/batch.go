package main

// A batch of records on its way to one partition.

import (
	"bytes"
	"io"

	"github.com/segmentio/kafka-go"
)

const (
	batchRecords = 4096
	// batchBytes leaves room for framing below the 1 MiB that a broker takes by
	// default (message.max.bytes 1048588).
	batchBytes = 900 * kib
	// recordOverhead is at least what a record's framing takes.
	recordOverhead = 24
)

// batch keeps records one behind the other in a single buffer.
type batch struct {
	buf  []byte
	ends []recordEnds
}

type recordEnds struct {
	key, value int // where each ends in buf; a record starts where the last ended
	nullKey    bool
}

func (b *batch) reset()    { b.buf, b.ends = b.buf[:0], b.ends[:0] }
func (b *batch) size() int { return len(b.buf) + recordOverhead*len(b.ends) }

// fits reports whether a record of n bytes goes in. An empty batch takes any.
func (b *batch) fits(n, limit int) bool {
	return len(b.ends) == 0 || len(b.ends) < batchRecords && b.size()+n+recordOverhead <= limit
}

func (b *batch) add(key, value []byte) {
	b.buf = append(b.buf, key...)
	end := recordEnds{key: len(b.buf), nullKey: key == nil}
	b.buf = append(b.buf, value...)
	end.value = len(b.buf)
	b.ends = append(b.ends, end)
}

// records reads the records [from, to), once.
func (b *batch) records(from, to int) *batchReader {
	r := &batchReader{batch: b, next: from, to: to}
	if from > 0 {
		r.start = b.ends[from-1].value
	}
	r.record.Value = &r.value
	return r
}

// batchReader is a kafka.RecordReader that allocates nothing a record: kafka-go
// writes each one out before it asks for the next.
type batchReader struct {
	batch    *batch
	next, to int
	start    int
	record   kafka.Record
	key      recordBytes
	value    recordBytes
}

type recordBytes struct{ bytes.Reader }

func (*recordBytes) Close() error { return nil }

// ReadRecord returns the next record, which holds until the call after it.
func (r *batchReader) ReadRecord() (*kafka.Record, error) {
	if r.next == r.to {
		return nil, io.EOF
	}
	end := r.batch.ends[r.next]
	r.record.Key = nil
	if !end.nullKey {
		r.key.Reset(r.batch.buf[r.start:end.key])
		r.record.Key = &r.key
	}
	r.value.Reset(r.batch.buf[end.key:end.value])
	r.start = end.value
	r.next++
	return &r.record, nil
}
