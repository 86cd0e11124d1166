package recordbatch

// Batches for tests, encoded by franz-go, and franz-go's reading of them. Its implementation shares only
// the specification with ours.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tb is the common part of a test, a fuzz target and a rapid check.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

type header struct {
	key   string
	value []byte
}

type record struct {
	offset     int64
	time       int64
	key, value []byte
	headers    []header
	whole      bool // it stands for a batch
}

// spec describes a batch. Its records have absolute offsets and times.
type spec struct {
	base     int64
	last     int64 // offset; zero means that of the last record
	time     int64
	maxTime  int64
	attrs    int16 // codec and flags
	producer int64
	records  []record
	count    int32  // if it differs from len(records)
	payload  []byte // replaces records
}

func (s spec) encode() []byte {
	b := kmsg.RecordBatch{
		FirstOffset: s.base, PartitionLeaderEpoch: 3, Magic: 2, Attributes: s.attrs,
		FirstTimestamp: s.time, MaxTimestamp: s.maxTime,
		ProducerID: s.producer, ProducerEpoch: 1, FirstSequence: 7,
		NumRecords: int32(len(s.records)),
	}
	last := s.last
	if last == 0 && len(s.records) > 0 {
		last = s.records[len(s.records)-1].offset
	}
	b.LastOffsetDelta = int32(last - s.base)
	var raw []byte
	for _, r := range s.records {
		raw = s.appendRecord(raw, r)
	}
	if b.Records = raw; s.attrs&attrCodec != 0 && len(s.records) > 0 {
		b.Records = squeeze(int(s.attrs&attrCodec), raw)
	}
	if s.payload != nil {
		b.Records = s.payload
	}
	if s.count != 0 {
		b.NumRecords = s.count
	}
	b.Length = int32(headerSize - prefixSize + len(b.Records))
	return seal(b.AppendTo(nil))
}

func (s spec) appendRecord(dst []byte, r record) []byte {
	k := kmsg.Record{TimestampDelta64: r.time - s.time, OffsetDelta: int32(r.offset - s.base), Key: r.key, Value: r.value}
	for _, h := range r.headers {
		k.Headers = append(k.Headers, kmsg.Header{Key: h.key, Value: h.value})
	}
	k.Length = int32(len(k.AppendTo(nil)) - 1) // a length of 0 takes one byte
	return k.AppendTo(dst)
}

// seal corrects the CRC of every whole batch and message.
func seal(in []byte) []byte {
	for b := in; len(b) > magicAt; {
		n := int64(int32(binary.BigEndian.Uint32(b[8:]))) + prefixSize
		least := int64(headerSize)
		if b[magicAt] < 2 {
			least = minOldSize
		}
		if n < least || n > int64(len(b)) {
			break
		}
		if b[magicAt] < 2 {
			binary.BigEndian.PutUint32(b[oldCRCAt:], crc32.ChecksumIEEE(b[magicAt:n]))
		} else {
			binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[crcFrom:n], castagnoli))
		}
		b = b[n:]
	}
	return in
}

func squeeze(codec int, raw []byte) []byte {
	var out bytes.Buffer
	w := compress.Codecs[codec].NewWriter(&out)
	return written(&out, w, raw)
}

// written writes raw to w, closes w, and returns what w wrote to out.
func written(out *bytes.Buffer, w io.WriteCloser, raw []byte) []byte {
	if _, err := w.Write(raw); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func join(specs ...spec) []byte {
	var out []byte
	for _, s := range specs {
		out = append(out, s.encode()...)
	}
	return out
}

// plain returns a batch of n small records from offset base on.
func plain(base int64, n int, attrs int16) spec {
	s := spec{base: base, time: 1_000_000, maxTime: 2_000_000, attrs: attrs, producer: -1}
	for i := range n {
		s.records = append(s.records, record{
			offset: base + int64(i), time: 1_000_000 + int64(i),
			key: []byte{byte(i)}, value: []byte(`{"user_id":"u42","points":25}`),
		})
	}
	return s
}

// marker returns the control batch that ends a transaction.
func marker(offset, producer int64, kind byte) spec {
	return spec{base: offset, time: 5, maxTime: 5, attrs: attrControl | attrTransactional, producer: producer,
		records: []record{{offset: offset, time: 5, key: []byte{0, 0, 0, kind}, value: []byte{0, 0, 0, 0, 0, 0}}}}
}

const abort, commit = 0, 1

func keep(rec *Record) record {
	r := record{offset: rec.Offset, time: rec.Time, key: bytes.Clone(rec.Key), value: bytes.Clone(rec.Value), whole: rec.Whole != nil}
	rec.EachHeader(func(k, v []byte) { r.headers = append(r.headers, header{string(k), bytes.Clone(v)}) })
	return r
}

// readAll reads to the end, and checks the invariants for every input: the position never decreases, and no
// record is below it.
func readAll(t tb, r *Reader) ([]record, error) {
	t.Helper()
	var all []record
	at := r.Position()
	for {
		rec, err := r.Next()
		if p := r.Position(); p < at {
			t.Fatalf("the position went from %d back to %d", at, p)
		} else if err == nil && (rec.Offset < at || p != lastOf(rec)+1) {
			t.Fatalf("record %d at position %d moved it to %d", rec.Offset, at, p)
		}
		at = r.Position()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		if n := 0; rec.HeaderCount > 0 {
			rec.EachHeader(func(_, _ []byte) { n++ })
			if n != rec.HeaderCount {
				t.Fatalf("record %d has %d headers and shows %d", rec.Offset, rec.HeaderCount, n)
			}
		}
		all = append(all, keep(rec))
	}
}

// lastOf returns the offset of a record, or the last offset of the batch that it stands for.
func lastOf(rec *Record) int64 {
	if rec.Whole != nil {
		return rec.Whole.Last
	}
	return rec.Offset
}

func read(t tb, in []byte, from int64, aborted ...Aborted) ([]record, int64, error) {
	t.Helper()
	var r Reader
	defer r.Close()
	r.Reset(in, from, aborted)
	all, err := readAll(t, &r)
	return all, r.Position(), err
}

func franz(in []byte, from int64, aborted ...Aborted) ([]record, int64, error) {
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = in
	for _, a := range aborted {
		p.AbortedTransactions = append(p.AbortedTransactions,
			kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.Producer, FirstOffset: a.First})
	}
	o := kgo.ProcessFetchPartitionOpts{Offset: from, IsolationLevel: kgo.ReadCommitted()}
	fp, next := kgo.ProcessFetchPartition(o, &p, kgo.DefaultDecompressor(), nil)
	var all []record
	for _, r := range fp.Records {
		rec := record{offset: r.Offset, time: r.Timestamp.UnixMilli(), key: r.Key, value: r.Value}
		for _, h := range r.Headers {
			rec.headers = append(rec.headers, header{h.Key, h.Value})
		}
		all = append(all, rec)
	}
	return all, next, fp.Err
}

func same(t tb, got, want []record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, and should be %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.offset != w.offset || g.time != w.time || !sameBytes(g.key, w.key) || !sameBytes(g.value, w.value) || len(g.headers) != len(w.headers) {
			t.Fatalf("record %d is %+v, and should be %+v", i, g, w)
		}
		for j := range w.headers {
			if g.headers[j].key != w.headers[j].key || !sameBytes(g.headers[j].value, w.headers[j].value) {
				t.Fatalf("header %d of record %d is %+v, and should be %+v", j, i, g.headers[j], w.headers[j])
			}
		}
	}
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
