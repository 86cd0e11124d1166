package produce

// Records for franz-go, which keeps them until they are acknowledged: copies of what a source
// gives, as that uses its memory again.

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/cmd/consumer/units"
)

// recordBuffer makes records, many of an allocation.
type recordBuffer struct {
	bytes   []byte
	records []kgo.Record
}

const (
	bufferBytes   = 64 * units.KiB
	bufferRecords = 256
)

// record copies what it is given.
func (b *recordBuffer) record(o outgoing) *kgo.Record {
	if len(b.records) == cap(b.records) {
		b.records = make([]kgo.Record, 0, bufferRecords)
	}
	b.records = append(b.records, kgo.Record{Key: b.copy(o.key), Value: b.copy(o.value), Timestamp: o.at})
	r := &b.records[len(b.records)-1]
	for _, h := range o.headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: b.copy(h.Value)})
	}
	return r
}

// copy keeps nil apart from what is empty: a record without a key has no empty one.
func (b *recordBuffer) copy(from []byte) []byte {
	if from == nil {
		return nil
	}
	if len(from) > cap(b.bytes)-len(b.bytes) {
		b.bytes = make([]byte, 0, max(len(from), bufferBytes))
	}
	start := len(b.bytes)
	b.bytes = append(b.bytes, from...)
	return b.bytes[start:len(b.bytes):len(b.bytes)]
}
