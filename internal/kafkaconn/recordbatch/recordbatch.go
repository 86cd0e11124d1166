// Package recordbatch reads the records of one fetch response at read_committed: Kafka's record batches,
// magic 2, as its protocol guide describes them. It refuses messages of magic 0 and 1, from before Kafka
// 0.11, with an error of their own.
//
// Batches are parsed in place, without copies. kafka-go's codecs decompress batches through a window of a
// few records, so a batch that expands a hundredfold takes no more memory than the window. Before a codec
// is opened, the memory that it will take is computed from its input (codec.go) and reserved.
//
// Position never decreases, and no record is returned twice: batches, and records in a batch, must have
// ascending offsets.
package recordbatch

import (
	"errors"
	"fmt"
	"io"
)

var (
	// ErrCorrupt reports a batch that breaks the format, its own checksum or its order. An intact batch of
	// another format is an OldFormatError.
	ErrCorrupt = errors.New("corrupt record batch")
	// ErrTruncated reports a response whose first batch is incomplete. A broker sends the first batch
	// whole, however large it is, so the response was cut off.
	ErrTruncated = errors.New("first record batch is cut off")
	// ErrNoMemory reports that Memory refused a reservation. Nothing is lost: the caller may call Next
	// again, or call Close, which releases all memory, and continue from Position.
	ErrNoMemory = errors.New("no memory to decompress a record batch")
)

const (
	// DefaultMaxRecord is the default of MaxRecord: Kafka's default max.message.bytes, plus an allowance
	// for the parts of a record other than its value.
	DefaultMaxRecord = 1<<20 + 64<<10
	// DefaultMaxCodec is the default of MaxCodec. Every block size of lz4 is below it, and so is zstd with
	// 16 MiB of content, whatever window it declares.
	DefaultMaxCodec = 32 << 20
)

// Record is valid until the next call of Next, Reset or Close.
type Record struct {
	Offset int64
	// Time is in Unix milliseconds: the batch's maxTimestamp under LogAppendTime, else the producer's time,
	// and -1 if the producer set none. A time of 0 or less counts as none. A sum that overflows wraps, as
	// in Kafka's own client, so that all consumers see the same time.
	Time       int64
	Key, Value []byte // nil if null
	// Headers is the validated raw region of HeaderCount headers.
	Headers     []byte
	HeaderCount int
	// Oversize is the record's size in bytes if it exceeds MaxRecord. Such a record is skipped: Key, Value
	// and Headers are empty.
	Oversize int64
	// Whole is set if the record stands for all records of a batch that takes more memory than allowed.
	// Offset is then the first wanted offset, Time the latest time, and Oversize the memory that the batch
	// takes.
	Whole *Whole
}

// Count returns the number of records that rec stands for: 1, unless it stands for a batch.
func (rec *Record) Count() int64 {
	if rec.Whole == nil {
		return 1
	}
	return rec.Whole.Count
}

// Whole describes a batch whose records are not read.
type Whole struct {
	Last  int64 // the last offset of the batch
	First int64 // Unix ms: the time of the batch's first record; Record.Time is the latest
	Count int64 // number of records at Offset and later, at most
	Codec string
	Limit int64 // bytes
	// Compressed means that the codec would take more than Limit, which is MaxCodec. Otherwise the batch as
	// it came is larger than Limit.
	Compressed bool
}

// TooLarge describes the batch that rec stands for. limit names the setting that limits it.
func (rec *Record) TooLarge(limit string) string {
	w := rec.Whole
	if w.Compressed {
		return fmt.Sprintf("the %s record batch up to offset %d takes %d bytes to decompress, and %s allows %d", w.Codec, w.Last, rec.Oversize, limit, w.Limit)
	}
	return fmt.Sprintf("the record batch up to offset %d has %d bytes, and %s allows %d", w.Last, rec.Oversize, limit, w.Limit)
}

// Aborted is an aborted transaction of a producer, which starts at the offset First.
type Aborted struct{ Producer, First int64 }

// Memory grants reservations before the memory is allocated. Take returns at once.
type Memory interface {
	Take(bytes int64) bool
	Release(bytes int64)
}

// Reader reads the batches of one response after another. The zero value reads nothing until Reset. It is
// not safe for concurrent use.
type Reader struct {
	MaxRecord int64  // bytes of a record, without its length; 0 means DefaultMaxRecord
	MaxCodec  int64  // bytes that a codec may take; 0 means DefaultMaxCodec
	Memory    Memory // nil means no limit

	in      []byte // the bytes after the current batch
	passed  *Passed
	whole   bool  // this response had a whole batch
	pos     int64 // next offset to read
	floor   int64 // lowest offset at which the next batch may start
	aborted []Aborted
	err     error // final, unless it is ErrNoMemory

	open  bool // batch, left, delta, data and at belong to the batch being read
	batch batch
	left  int   // records of the batch that are not read yet
	delta int64 // offset delta of the last record, -1 before the first
	data  []byte
	at    int // data[at:] is not read yet

	stream stream
	rec    Record
}

// Reset starts reading a response's records. from is the first wanted offset, since a fetch may start
// inside a batch. The Reader keeps both slices until the next Reset or Close, and sorts and modifies
// aborted.
func (r *Reader) Reset(records []byte, from int64, aborted []Aborted) {
	r.closeBatch()
	r.in, r.passed, r.whole, r.pos, r.floor, r.err = records, nil, false, from, 0, nil
	r.aborted = aborted
	sortAborted(aborted)
}

// Position returns the next offset to read: after the last record returned, and after every batch that was
// read, including empty, aborted and control batches.
func (r *Reader) Position() int64 { return r.pos }

// LogAppendTime reports whether the broker set the time of the record that Next returned last.
func (r *Reader) LogAppendTime() bool { return r.batch.logAppendTime() }

// Epoch returns the leader epoch of the batch that was read last. It returns false if no batch was read
// since Reset, or if the batch has no epoch.
func (r *Reader) Epoch() (int32, bool) { return r.batch.epoch, r.whole && r.batch.epoch >= 0 }

// Close releases memory and codecs. Next then returns io.EOF until the next Reset. Position stays valid.
func (r *Reader) Close() {
	r.closeBatch()
	r.stream.rest(r.Memory)
	r.in, r.passed, r.aborted, r.err = nil, nil, nil, io.EOF
	r.rec = Record{}
}

// Next returns the next committed record at or after the offset given to Reset, and io.EOF at the end of
// the response. A last batch that is cut off is left to the next fetch. All errors except ErrNoMemory are
// final.
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

// nextBatch takes the next batch from the response, and opens or skips it. whole reports that rec stands
// for the whole batch.
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
		case ok && b.control(): // no broker compresses control batches
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

// wants reports whether a batch's records must be read. Compaction may leave a batch without records, to
// keep its last offset. Records of an aborted batch are never read.
func (r *Reader) wants(b *batch) bool {
	return b.count > 0 && (b.last() >= r.pos && !r.isAborted(*b) || b.control())
}

// took stores the batch that is read now.
func (r *Reader) took(b batch) { r.whole, r.floor, r.batch = true, b.last()+1, b }

// standFor makes rec stand for a batch that takes too much memory.
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

// cut returns io.EOF for a last batch that is incomplete, but an error for a first one.
func (r *Reader) cut(err error, size int) error {
	switch {
	case !errors.Is(err, errShort):
		return err
	case r.whole || len(r.in) == 0:
		return io.EOF
	}
	return fmt.Errorf("records from offset %d: %w: %d bytes of %d are there", r.pos, ErrTruncated, len(r.in), size)
}

// checkEnd checks, before the last record is returned, that nothing follows it. If the error came later, a
// reader that retries would continue after the batch, and a reader that must read everything without an
// error never could.
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

// need makes at least n bytes available from at on. n is at most MaxRecord and the size of a length.
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
