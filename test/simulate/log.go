package simulate

// The simulated log: partitions of record batches in the bytes that a broker would
// send, with transactions, gaps, compressed batches, LogAppendTime, and a start that
// retention moves.

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
	hole    bool // compaction took it: its offset is used, and nothing is there
}

// outcome is what becomes of the transaction that a batch is sent in.
type outcome int

const (
	plain     outcome = iota // no transaction
	committed                // committed at once
	aborted                  // aborted at once
	open                     // left open: it ends later, committed or aborted
)

// sending is one batch, as a producer sends it.
type sending struct {
	partition  int
	codec      int8 // of kafka-go's codecs; 0: none
	appendTime bool // LogAppendTime: the batch's time counts
	outcome    outcome
	gap        int64 // offsets that are used up behind it, with nothing there
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
	producer   int64 // of its transaction; 0: none
	of         *transaction
	maxTime    int64
}

// stored is a record in the log. What a transaction that is aborted or open holds
// isn't visible.
type stored struct {
	record
	offset int64
	sent   int64 // the clocks as it was: see world.reached
}

type transaction struct {
	producer    int64
	first, last int64 // offsets; last is the marker's, -1 while it is open
	aborted     bool
}

// partition is one partition's log.
type partition struct {
	id           int // among those of all topics
	topic        string
	number       int // of its topic
	start, end   int64
	blind        time.Time // until when a look-up by time finds deleted records: see since
	gap          int64     // offsets that the next batch leaves out: the last one always stays
	batches      []*batch
	transactions []*transaction
	latest       int64 // time of a record, ms
	elections    []election
	mended       bool // what the last one lost

	// What a new leader knows of the log that doesn't know its end yet, until when, and
	// how often that was an answer.
	seen   int64
	until  time.Time
	misled int
}

// send appends a batch, and the marker of its transaction, where clocks have come to reached, ms.
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
	if s.appendTime { // a broker's clock, which is ahead of what was sent so far
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

// idle is the first producer that has no transaction under way: one producer has many,
// one after the other.
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

// close ends the transactions that are open.
func (p *partition) close(aborted bool) (ended int) {
	for _, t := range p.transactions {
		if t.last < 0 {
			p.mark(t, aborted)
			ended++
		}
	}
	return ended
}

// stable is the end as read_committed sees it.
func (p *partition) stable() int64 {
	for _, t := range p.transactions {
		if t.last < 0 {
			return t.first
		}
	}
	return p.end
}

// stale reports whether the leader knows less than there is.
func (p *partition) stale() bool {
	return time.Now().Before(p.until) && p.seen >= p.start && p.seen < p.stable()
}

// shown are the log's end and its stable one as the leader knows them.
func (p *partition) shown() (end, stable int64) {
	if p.stale() {
		return p.seen, p.seen
	}
	return p.end, p.stable()
}

// answers are shown, in an answer.
func (p *partition) answers() (end, stable int64) {
	if p.stale() {
		p.misled++
	}
	return p.shown()
}

// before is the beginning of the last batch that begins before an offset.
func (p *partition) before(offset int64) int64 {
	last := p.start
	for _, b := range p.batches {
		if b.base >= p.start && b.base < offset {
			last = b.base
		}
	}
	return last
}

// visible calls do with every committed record from an offset on.
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

// holding is the last offset up to one at which there is a record, or the end: a log is
// cut between records. Where compaction once left nothing at its start, nobody could tell
// that there was something before.
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

// since is the first offset of a record of a time or later; -1 without one. For a while after records were deleted, a
// broker finds them and then says that there is none.
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

// read is what a fetch from an offset on brings: whole batches, at least one, and the
// transactions among them that were aborted.
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

// encode writes a batch as magic 2.
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
		panic(err) // into memory
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
