package main

// A batch of records on its way to one partition.

import (
	"bytes"
	"io"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/units"
)

const (
	batchRecords = 4096
	// batchBytes leaves room for framing below the 1 MiB that a broker takes by
	// default (message.max.bytes 1048588).
	batchBytes = 900 * units.KiB
	// recordOverhead is at least what a record's framing takes.
	recordOverhead = 24
	// lengthBytes is what the length of a header's key or value takes here.
	lengthBytes = 2
)

// batch keeps records one behind the other in a single buffer.
type batch struct {
	buf  []byte
	ends []recordEnds
	own  []ownParts // of the records that have some
	more int        // bytes of those
}

// ownParts are what a mended copy has and an event hasn't.
type ownParts struct {
	headers []kafka.Header
	at      time.Time
}

// recordEnds is where the parts of a record end in buf, one behind the other; a
// record starts where the last one ended.
type recordEnds struct {
	key, value, id, time int
	nullKey              bool
	own                  int32 // its index in the batch's own, plus one; 0 is none
}

func (b *batch) reset() {
	clear(b.own)
	b.buf, b.ends, b.own, b.more = b.buf[:0], b.ends[:0], b.own[:0], 0
}

// size is about how many bytes a record takes, without framing.
func (o *outgoing) size() int {
	n := len(o.key) + len(o.value) + len(o.id) + len(o.time)
	for _, h := range o.headers {
		n += len(h.Key) + len(h.Value) + 2*lengthBytes
	}
	return n
}

// fits reports whether a record of n bytes goes in, where each takes some more for
// framing and headers. An empty batch takes any.
func (b *batch) fits(n, more, limit int) bool {
	return len(b.ends) == 0 || len(b.ends) < batchRecords && len(b.buf)+b.more+n+more*(len(b.ends)+1) <= limit
}

func (b *batch) add(o outgoing) {
	b.buf = append(b.buf, o.key...)
	end := recordEnds{key: len(b.buf), nullKey: o.key == nil}
	b.buf = append(b.buf, o.value...)
	end.value = len(b.buf)
	b.buf = append(b.buf, o.id...)
	end.id = len(b.buf)
	b.buf = append(b.buf, o.time...)
	end.time = len(b.buf)
	if o.letter {
		b.own = append(b.own, ownParts{o.headers, o.at})
		b.more += o.size() - len(o.key) - len(o.value)
		end.own = int32(len(b.own))
	}
	b.ends = append(b.ends, end)
}

// start is where a record starts in buf.
func (b *batch) start(record int) int {
	if record == 0 {
		return 0
	}
	return b.ends[record-1].time
}

// volume is how many bytes of keys and values the records [from, to) have.
func (b *batch) volume(from, to int) int {
	n := 0
	for i := from; i < to; i++ {
		n += b.ends[i].value - b.start(i)
	}
	return n
}

// records reads the records [from, to), once, with these headers.
func (b *batch) records(from, to int, headers []kafka.Header) *batchReader {
	r := &batchReader{batch: b, next: from, to: to, headers: slices.Clone(headers)}
	r.record.Value = &r.value
	return r
}

// batchReader is a kafka.RecordReader that allocates nothing a record: kafka-go
// writes each one out before it asks for the next.
type batchReader struct {
	batch    *batch
	next, to int
	headers  []kafka.Header // of all records
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
	start, end := r.batch.start(r.next), r.batch.ends[r.next]
	r.record.Key = nil
	if !end.nullKey {
		r.key.Reset(r.batch.buf[start:end.key])
		r.record.Key = &r.key
	}
	r.value.Reset(r.batch.buf[end.key:end.value])
	r.record.Headers, r.record.Time = r.headers, time.Time{}
	if end.own > 0 {
		own := r.batch.own[end.own-1]
		r.record.Headers, r.record.Time = own.headers, own.at
	}
	if end.id > end.value { // in the last two headers
		of := r.record.Headers[len(r.record.Headers)-2:]
		of[0].Value, of[1].Value = r.batch.buf[end.value:end.id], r.batch.buf[end.id:end.time]
	}
	r.next++
	return &r.record, nil
}
