package simulate

// This file simulates the log: partitions of record batches, as the bytes that a broker would send, with
// transactions, gaps, compressed batches, LogAppendTime, and a start that retention moves.

import (
	"bytes"
	"hash/crc32"
	"slices"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"

	"encoding/binary"
)

// record is one that a producer sends.
type record struct {
	time    int64 // Unix ms
	key     []byte
	value   []byte // nil: a tombstone
	headers []kmsg.Header
	hole    bool // compaction removed it: its offset is used, but empty
}

// outcome is the outcome of the transaction of a batch.
type outcome int

const (
	plain     outcome = iota // without a transaction
	committed                // committed at once
	aborted                  // aborted at once
	open                     // open: committed or aborted later
)

// sending is one batch as a producer sends it.
type sending struct {
	partition  int
	codec      int8 // a codec of kafka-go; 0: none
	appendTime bool // LogAppendTime: the batch's time counts
	outcome    outcome
	gap        int64 // unused offsets after the batch
	records    []record
}

const (
	attrAppendTime    = 1 << 3
	attrTransactional = 1 << 4
	attrControl       = 1 << 5
)

type batch struct {
	base, last int64 // offsets
	bytes      []byte
	records    []stored
	producer   int64 // the producer id of its transaction; 0: none
	of         *transaction
	maxTime    int64
}

// stored is a record in the log. Records of aborted and open transactions are not visible.
type stored struct {
	record
	offset int64
	sent   int64 // Redis's clock when it was sent: see world.reached
}

type transaction struct {
	producer    int64
	first, last int64 // offsets; last is the marker's, -1 while the transaction is open
	aborted     bool
}

// partition is the log of one partition.
type partition struct {
	id           int // index over all topics
	topic        string
	number       int // within its topic
	start, end   int64
	blind        time.Time // until then a look-up by time finds deleted records: see since
	gap          int64     // unused offsets before the next batch, so that the log always ends with a record
	batches      []*batch
	transactions []*transaction
	latest       int64 // latest record time, ms
	elections    []election
	mended       bool // the last election's loss is repaired

	// A new leader does not know the log's end yet: the end that it knows, until when, and how often it was
	// answered.
	seen   int64
	until  time.Time
	misled int
}

// send appends a batch, and the marker of its transaction. reached is the highest clock so far, in ms.
func (p *partition) send(s *sending, reached int64) {
	p.end += p.gap
	p.gap = s.gap
	b := &batch{base: p.end}
	attrs := int16(s.codec)
	var t *transaction
	if s.outcome != plain {
		attrs |= attrTransactional
		t = &transaction{producer: p.idle(), first: p.end, last: -1}
		b.producer, b.of = t.producer, t
		p.transactions = append(p.transactions, t)
	}
	last := p.end - 1
	for _, r := range s.records {
		last++
		b.maxTime = max(b.maxTime, r.time)
		if !r.hole || last == p.start && p.start > 0 { // see holding
			b.records = append(b.records, stored{r, last, reached})
		}
	}
	if s.appendTime { // the broker's clock, which is at or after all earlier times
		attrs |= attrAppendTime
		b.maxTime = max(b.maxTime, p.latest)
		for i := range b.records {
			b.records[i].time = b.maxTime
		}
	}
	p.latest = max(p.latest, b.maxTime)
	b.last = max(last, p.end)
	b.bytes = encode(b, attrs)
	p.stamp(b)
	p.batches = append(p.batches, b)
	p.end = b.last + 1
	switch s.outcome {
	case committed:
		p.mark(t, false)
	case aborted:
		p.mark(t, true)
	case plain, open:
	}
}

// idle returns the first producer without an open transaction: one producer has many transactions, one
// after another.
func (p *partition) idle() int64 {
	producer := int64(1001)
	for slices.ContainsFunc(p.transactions, func(t *transaction) bool { return t.last < 0 && t.producer == producer }) {
		producer++
	}
	return producer
}

// mark ends a transaction.
func (p *partition) mark(t *transaction, aborted bool) {
	kind := byte(1)
	if aborted {
		kind = 0
	}
	b := &batch{base: p.end, last: p.end, producer: t.producer}
	marker := record{key: []byte{0, 0, 0, kind}, value: []byte{0, 0, 0, 0, 0, 0}}
	b.records = []stored{{record: marker, offset: p.end}}
	b.bytes = encode(b, attrTransactional|attrControl)
	p.stamp(b)
	b.records = nil
	t.last, t.aborted = p.end, aborted
	p.batches = append(p.batches, b)
	p.end++
}

// close ends the open transactions.
func (p *partition) close(aborted bool) (ended int) {
	for _, t := range p.transactions {
		if t.last < 0 {
			p.mark(t, aborted)
			ended++
		}
	}
	return ended
}

// stable returns the last stable offset, the log's end for read_committed.
func (p *partition) stable() int64 {
	for _, t := range p.transactions {
		if t.last < 0 {
			return t.first
		}
	}
	return p.end
}

// stale reports whether the leader does not know the log's end.
func (p *partition) stale() bool {
	return time.Now().Before(p.until) && p.seen >= p.start && p.seen < p.stable()
}

// shown returns the log's end and the last stable offset as the leader knows them.
func (p *partition) shown() (end, stable int64) {
	if p.stale() {
		return p.seen, p.seen
	}
	return p.end, p.stable()
}

// answers returns the same as shown, for a response, and counts wrong answers.
func (p *partition) answers() (end, stable int64) {
	if p.stale() {
		p.misled++
	}
	return p.shown()
}

// before returns the start of the last batch that starts before an offset.
func (p *partition) before(offset int64) int64 {
	last := p.start
	for _, b := range p.batches {
		if b.base >= p.start && b.base < offset {
			last = b.base
		}
	}
	return last
}

// visible calls do for every committed record from an offset on.
func (p *partition) visible(from int64, do func(*stored)) {
	for _, b := range p.batches {
		if b.of != nil && (b.of.aborted || b.of.last < 0) {
			continue
		}
		for i := range b.records {
			if b.records[i].offset >= from {
				do(&b.records[i])
			}
		}
	}
}

// holding returns the last offset up to a limit that has a record, or the limit if it is the log's end: a
// log is cut between records. If the log started at an offset that compaction had emptied, no reader could
// tell that there was something before.
func (p *partition) holding(to int64) int64 {
	if to >= p.end {
		return to
	}
	last := int64(0)
	for _, b := range p.batches {
		for _, r := range b.records {
			if r.offset <= to {
				last = r.offset
			}
		}
	}
	return last
}

// since returns the first offset with a record time of ms or later; -1 if there is none. For a while after
// records were deleted, a broker still finds them, and then answers that there is none.
func (p *partition) since(ms int64) int64 {
	stable := p.stable()
	for _, b := range p.batches {
		if b.last < p.start && b.maxTime >= ms && time.Now().Before(p.blind) {
			return -1
		}
		for _, r := range b.records {
			if r.time >= ms && r.offset >= p.start && r.offset < stable {
				return r.offset
			}
		}
	}
	return -1
}

// read returns the response to a fetch: whole batches, at least one, and the aborted transactions among
// them.
func (p *partition) read(offset int64, most int) (out []byte, gone []kmsg.FetchResponseTopicPartitionAbortedTransaction) {
	_, stable := p.shown()
	last := offset
	for _, b := range p.batches {
		if b.last < offset || b.last < p.start || b.base >= stable {
			continue
		}
		if len(out) > 0 && len(out)+len(b.bytes) > most {
			break
		}
		out = append(out, b.bytes...)
		last = b.last
	}
	for _, t := range p.transactions {
		if t.aborted && t.first <= last && t.last >= offset {
			gone = append(gone, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: t.producer, FirstOffset: t.first})
		}
	}
	return out, gone
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode encodes a batch with magic 2.
func encode(b *batch, attrs int16) []byte {
	first := b.maxTime
	for _, r := range b.records {
		first = min(first, r.time)
	}
	k := kmsg.RecordBatch{
		FirstOffset: b.base, PartitionLeaderEpoch: firstEpoch, Magic: 2, Attributes: attrs,
		LastOffsetDelta: int32(b.last - b.base), FirstTimestamp: first, MaxTimestamp: b.maxTime,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(b.records)),
	}
	if b.producer != 0 {
		k.ProducerID, k.ProducerEpoch, k.FirstSequence = b.producer, 0, 0
	}
	for _, r := range b.records {
		one := kmsg.Record{TimestampDelta64: r.time - first, OffsetDelta: int32(r.offset - b.base), Key: r.key, Value: r.value, Headers: r.headers}
		one.Length = int32(len(one.AppendTo(nil)) - 1) // a length of 0 takes one byte
		k.Records = one.AppendTo(k.Records)
	}
	if codec := attrs & 7; codec != 0 && len(b.records) > 0 {
		k.Records = squeeze(int(codec), k.Records)
	}
	const header, lengthEnd, crcAt, crcFrom = 61, 12, 17, 21
	k.Length = int32(header - lengthEnd + len(k.Records))
	out := k.AppendTo(nil)
	binary.BigEndian.PutUint32(out[crcAt:], crc32.Checksum(out[crcFrom:], castagnoli))
	return out
}

func squeeze(codec int, raw []byte) []byte {
	var out bytes.Buffer
	w := compress.Codecs[codec].NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		panic(err) // writes to memory cannot fail
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
