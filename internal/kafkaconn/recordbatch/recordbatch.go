// Package recordbatch reads the records of one fetch response: Kafka's record
// batches, magic 2, as its protocol guide describes them, at read_committed. The
// messages of before Kafka 0.11, magic 0 and 1, are refused as such.
//
// Batches are parsed where they lie and nothing is copied. Compressed ones are
// decompressed by kafka-go's codecs through a window that holds a few records at
// a time, so that a batch which expands a hundredfold costs the window and no
// more. What a codec will hold is read from its input before it is opened
// (codec.go), and asked for.
//
// Position never goes back and a record is never returned twice: batches, and
// records in a batch, have to come in ascending order of offsets.
package recordbatch

import (
	"errors"
	"fmt"
	"io"
)

var (
	// ErrCorrupt is a batch that breaks the format, its own sums or its order. What
	// is whole and of another format is an OldFormatError.
	ErrCorrupt = errors.New("corrupt record batch")
	// ErrTruncated is a response that doesn't hold its first batch whole. A
	// broker sends the first batch whole, however large: the response is cut.
	ErrTruncated = errors.New("first record batch is cut off")
	// ErrNoMemory is a refusal by Memory. Nothing is lost: Next may be called
	// again, or Close gives everything back and Position says where to go on.
	ErrNoMemory = errors.New("no memory to decompress a record batch")
)

const (
	// DefaultMaxRecord is MaxRecord where it isn't set: Kafka's default
	// max.message.bytes, with room for what belongs to a record but not its value.
	DefaultMaxRecord = 1<<20 + 64<<10
	// DefaultMaxCodec is MaxCodec where it isn't set. Every block size of lz4 stays below
	// it, and so does zstd with 16 MiB of content, whatever window it declares.
	DefaultMaxCodec = 32 << 20
)

// Record is valid until the next call of Next, Reset or Close.
type Record struct {
	Offset int64
	// Time is in Unix milliseconds: the batch's maxTimestamp under LogAppendTime,
	// else the producer's, and -1 where that gave none. At or below 0 it counts as
	// none. A sum that overflows wraps, as it does in Kafka's own client, so that all
	// see the same time.
	Time       int64
	Key, Value []byte // nil where null
	// Headers is the raw region of HeaderCount headers, already checked.
	Headers     []byte
	HeaderCount int
	// Oversize is the record's size in bytes where it is above MaxRecord. It was
	// gone over, and Key, Value and Headers are empty.
	Oversize int64
	// Whole is set if the record stands for all records of a batch that takes more memory than
	// is allowed. Offset is the first of them that is wanted, Time the latest, and Oversize
	// what the batch takes.
	Whole *Whole
}

// Count is how many records it is: 1, unless it stands for a batch.
func (rec *Record) Count() int64 {
	if rec.Whole == nil {
		return 1
	}
	return rec.Whole.Count
}

// Whole is a batch whose records aren't read.
type Whole struct {
	Last  int64 // the last offset of the batch
	First int64 // Unix ms: the time of the batch's first record; Record.Time is the latest
	Count int64 // records at Offset and later, at most
	Codec string
	Limit int64 // bytes
	// Compressed is whether the codec would hold more than Limit, which is MaxCodec. Else the
	// batch as it came is larger.
	Compressed bool
}

// TooLarge describes the batch that rec stands for. limit names what allows no more.
func (rec *Record) TooLarge(limit string) string {
	w := rec.Whole
	if w.Compressed {
		return fmt.Sprintf("the %s record batch up to offset %d takes %d bytes to decompress, and %s allows %d", w.Codec, w.Last, rec.Oversize, limit, w.Limit)
	}
	return fmt.Sprintf("the record batch up to offset %d has %d bytes, and %s allows %d", w.Last, rec.Oversize, limit, w.Limit)
}

// Aborted is an aborted transaction of a producer, from the offset First on.
type Aborted struct{ Producer, First int64 }

// Memory grants whatever of size is allocated, before it is. Take answers at once.
type Memory interface {
	Take(bytes int64) bool
	Release(bytes int64)
}

// Reader walks the batches of one response after another. The zero value reads
// nothing until Reset. It isn't safe for concurrent use.
type Reader struct {
	MaxRecord int64  // bytes of a record, without its length; 0 is DefaultMaxRecord
	MaxCodec  int64  // bytes a codec may hold; 0 is DefaultMaxCodec
	Memory    Memory // nil is without bounds

	in      []byte // what follows the current batch
	passed  *Passed
	whole   bool  // a whole batch has been met in this response
	pos     int64 // next offset to read
	floor   int64 // lowest offset that the next batch may begin at
	aborted []Aborted
	err     error // final, unless it is ErrNoMemory

	open  bool // batch, left, delta, data and at are those of a batch being read
	batch batch
	left  int   // records still to come in it
	delta int64 // offset delta of the last one, -1 before the first
	data  []byte
	at    int // data[at:] is still to be read

	stream stream
	rec    Record
}

// Reset begins a response's records, of which those from an offset on are
// wanted: a fetch may begin inside a batch. The Reader keeps both slices until
// the next Reset or Close, and sorts and marks aborted.
func (r *Reader) Reset(records []byte, from int64, aborted []Aborted) {
	r.closeBatch()
	r.in, r.passed, r.whole, r.pos, r.floor, r.err = records, nil, false, from, 0, nil
	r.aborted = aborted
	sortAborted(aborted)
}

// Position is the next offset to read: past the last record returned, and past
// every batch gone through, also empty, aborted and control ones.
func (r *Reader) Position() int64 { return r.pos }

// LogAppendTime reports whether the time of the record that Next returned last is the
// broker's.
func (r *Reader) LogAppendTime() bool { return r.batch.logAppendTime() }

// Epoch is the epoch of the leader that wrote the batch which was read last. It is false if no batch was read
// since Reset, or if the batch has none.
func (r *Reader) Epoch() (int32, bool) { return r.batch.epoch, r.whole && r.batch.epoch >= 0 }

// Close gives back memory and codecs. The Reader can be Reset again, and until
// then Next says io.EOF. Position stays.
func (r *Reader) Close() {
	r.closeBatch()
	r.stream.rest(r.Memory)
	r.in, r.passed, r.aborted, r.err = nil, nil, nil, io.EOF
	r.rec = Record{}
}

// Next returns the next committed record at or past the offset given to Reset,
// and io.EOF at the end of what came; a last batch that is cut off is left for
// the next fetch. Errors other than ErrNoMemory are final.
func (r *Reader) Next() (*Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	rec, err := r.next()
	if err != nil && !errors.Is(err, ErrNoMemory) {
		r.err = err
		r.closeBatch()
		r.stream.rest(r.Memory)
	}
	return rec, err
}

func (r *Reader) next() (*Record, error) {
	for {
		if !r.open {
			whole, err := r.nextBatch()
			if err != nil {
				return nil, err
			}
			if whole {
				return &r.rec, nil
			}
			continue
		}
		if r.left == 0 {
			r.pos = max(r.pos, r.batch.last()+1)
			r.closeBatch()
			continue
		}
		if err := r.readRecord(); err != nil {
			return nil, err
		}
		if r.left == 0 {
			if err := r.checkEnd(); err != nil {
				return nil, err
			}
		}
		if r.batch.control() {
			if err := r.marker(); err != nil {
				return nil, err
			}
			continue
		}
		if r.rec.Offset >= r.pos {
			r.pos = r.rec.Offset + 1
			return &r.rec, nil
		}
	}
}

// nextBatch takes the next batch off the response and opens it, or goes past it. It reports
// whether rec stands for the whole batch.
func (r *Reader) nextBatch() (whole bool, err error) {
	if r.passed != nil {
		return r.passedBatch(r.passed)
	}
	b, size, err := parseBatch(r.in)
	if err != nil {
		return false, r.cut(err, size)
	}
	if b.base < r.floor {
		return false, b.corrupt("it begins before the end of the batch before it, %d", r.floor)
	}
	wanted := r.wants(&b)
	r.data, r.at = r.in[headerSize:size], 0
	if wanted && b.codec() != 0 {
		err := r.stream.open(r, b, r.data)
		switch large, ok := errors.AsType[*tooLargeError](err); {
		case ok && b.control(): // no broker compresses one
			return false, b.corrupt("a control batch: %w", err)
		case ok:
			wanted, whole = false, true
			r.standFor(b, large.size, large.limit, true)
		case err != nil:
			return false, err
		}
		r.data = nil
	}
	r.in = r.in[size:]
	r.took(b)
	if !wanted {
		r.pos = max(r.pos, b.last()+1)
		return whole, nil
	}
	r.open, r.left, r.delta = true, b.count, -1
	return false, nil
}

// wants reports whether a batch's records are looked at. A batch without records may have been left by
// compaction, for its last offset; those of an aborted one are never looked at.
func (r *Reader) wants(b *batch) bool {
	return b.count > 0 && (b.last() >= r.pos && !r.isAborted(*b) || b.control())
}

// took notes the batch that is read now.
func (r *Reader) took(b batch) { r.whole, r.floor, r.batch = true, b.last()+1, b }

// standFor has rec stand for a batch that takes too much memory.
func (r *Reader) standFor(b batch, size, limit int64, compressed bool) {
	from, first := max(r.pos, b.base), b.firstTime
	if b.logAppendTime() {
		first = b.maxTime
	}
	r.rec = Record{
		Offset: from, Time: b.maxTime, Oversize: size,
		Whole: &Whole{Last: b.last(), First: first, Count: min(int64(b.count), b.last()-from+1), Codec: codecNames[b.codec()], Limit: limit, Compressed: compressed},
	}
}

// cut makes an end of a last batch that isn't whole, but not of a first one.
func (r *Reader) cut(err error, size int) error {
	switch {
	case !errors.Is(err, errShort):
		return err
	case r.whole || len(r.in) == 0:
		return io.EOF
	}
	return fmt.Errorf("records from offset %d: %w: %d bytes of %d are there", r.pos, ErrTruncated, len(r.in), size)
}

// checkEnd holds that nothing follows the last record, before that is returned: otherwise a
// reader that tries again would continue behind it, and one that must read everything without
// an error never could.
func (r *Reader) checkEnd() error {
	if n := len(r.data) - r.at; n > 0 {
		return r.batch.corrupt("%d bytes follow its last record", n)
	}
	if r.batch.codec() != 0 && !r.stream.ended() {
		return r.batch.corrupt("bytes follow its last record")
	}
	return nil
}

func (r *Reader) closeBatch() {
	r.stream.closeCodec(len(r.in) >= headerSize)
	r.open, r.data, r.at = false, nil, 0
}

// need makes at least n bytes from at on available, n being at most MaxRecord
// and a length.
func (r *Reader) need(n int) error {
	if len(r.data)-r.at >= n {
		return nil
	}
	if r.batch.codec() == 0 {
		return r.batch.corrupt("a record ends past the batch")
	}
	data, err := r.stream.fill(r.Memory, r.data[r.at:], n)
	r.data, r.at = data, 0
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoMemory):
		return fmt.Errorf("record batch at offset %d: a record of %d bytes: %w", r.batch.base, n, err)
	case errors.Is(err, io.EOF):
		return r.batch.corrupt("a record ends past the batch")
	default:
		return r.batch.corrupt("%w", err)
	}
}

func (r *Reader) maxRecord() int64 {
	if r.MaxRecord > 0 {
		return r.MaxRecord
	}
	return DefaultMaxRecord
}

func (r *Reader) maxCodec() int64 {
	if r.MaxCodec > 0 {
		return r.MaxCodec
	}
	return DefaultMaxCodec
}
