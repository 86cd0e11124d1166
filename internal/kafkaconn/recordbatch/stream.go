package recordbatch

// The window through which a compressed batch is read.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/segmentio/kafka-go/compress"
)

const (
	// windowSize is the initial size of a window. It grows to the size of the largest record.
	windowSize = 64 << 10
	// pooled is the size, in bytes, of the largest codec that is returned to kafka-go's pool at the end of
	// a response. No budget covers the pool, so larger codecs are left to the garbage collector.
	pooled = 1 << 20
)

// windows are the unused windows. They are not reserved: there are no more than were in use at the same
// time, and the garbage collector frees them.
var windows = sync.Pool{New: func() any { return new([windowSize]byte) }}

// stream has the codec while a batch is open. Its reservation lasts until the end of the response, for the
// batches to come, but no longer: a reader that waits for the next response has no memory.
type stream struct {
	// src has ReadByte, since gzip would otherwise put a buffer before it, and no Bytes, since zstd would
	// otherwise decode everything at once.
	src    bytes.Reader
	narrow narrow // of src
	codec  io.ReadCloser
	err    error // the codec's last error
	size   int64 // bytes that the open codec may take
	cost   int64 // bytes reserved for codecs
	buf    []byte
	one    [1]byte // for ended, as buf contains the last record
}

func take(m Memory, n int64) bool { return m == nil || m.Take(n) }

func release(m Memory, n int64) {
	if m != nil && n > 0 {
		m.Release(n)
	}
}

// open prepares to read the records of a compressed batch. After an ErrNoMemory it may be called again.
func (s *stream) open(r *Reader, b batch, payload []byte) error {
	size, descriptor, err := codecSize(b.codec(), payload)
	if err != nil {
		return b.corrupt("%s: %w", codecNames[b.codec()], err)
	}
	if limit := r.maxCodec(); size > limit {
		return &tooLargeError{size, limit}
	}
	if s.buf == nil {
		if !take(r.Memory, windowSize) {
			return fmt.Errorf("record batch at offset %d: a window: %w", b.base, ErrNoMemory)
		}
		s.buf = windows.Get().(*[windowSize]byte)[:]
	}
	if more := size - s.cost; more > 0 {
		if !take(r.Memory, more) {
			return fmt.Errorf("record batch at offset %d: %d bytes for %s: %w", b.base, size, codecNames[b.codec()], ErrNoMemory)
		}
		s.cost = size
	}
	s.src.Reset(payload)
	s.size, s.err = size, nil
	var src io.Reader = &s.src
	if descriptor != 0 {
		s.narrow = narrow{&s.src, descriptor}
		src = &s.narrow
	}
	s.codec = compress.Codecs[b.codec()].NewReader(src)
	return nil
}

// tooLargeError reports a codec that would take more than MaxCodec, in bytes.
type tooLargeError struct{ size, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it takes %d bytes to decompress, and at most %d are allowed", e.size, e.limit)
}

// fill reads until n bytes are available. These include unread, which is a part of the window. It moves
// unread to the window's start, and enlarges the window if n does not fit.
func (s *stream) fill(m Memory, unread []byte, n int) ([]byte, error) {
	if n > len(s.buf) {
		size := (n + n/4 + 8191) &^ 8191
		if !take(m, int64(size)) {
			return unread, ErrNoMemory
		}
		buf := make([]byte, size)
		copy(buf, unread)
		s.dropWindow(m)
		s.buf = buf
	} else {
		copy(s.buf, unread)
	}
	have := len(unread)
	for have < n {
		k, err := s.read(s.buf[have:])
		have += k
		if err != nil && have < n {
			return s.buf[:have], err
		}
	}
	return s.buf[:have], nil
}

// read reads at least one byte, or returns an error.
func (s *stream) read(b []byte) (int, error) {
	for range 100 {
		if s.err != nil {
			return 0, s.err
		}
		var n int
		if n, s.err = s.codec.Read(b); n > 0 {
			return n, nil
		}
	}
	s.err = io.ErrNoProgress
	return 0, s.err
}

// discard skips n bytes.
func (s *stream) discard(n int) error {
	for n > 0 {
		k, err := s.read(s.buf[:min(n, len(s.buf))])
		if n -= k; err != nil {
			return fmt.Errorf("%d bytes are missing: %w", n, noEOF(err))
		}
	}
	return nil
}

// ended reports whether nothing follows. An error of the codec counts as the end, too: all records were
// read, and the batch's CRC covers its bytes. Kafka's own consumer does not check LZ4's checksum of the
// content either.
func (s *stream) ended() bool {
	n, _ := s.read(s.one[:])
	return n == 0
}

// noEOF replaces an io.EOF that comes too early: io.EOF would tell the callers of Next that everything was
// read.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// closeCodec ends a batch; more means that another batch of this response may follow.
func (s *stream) closeCodec(more bool) {
	if s.codec == nil {
		return
	}
	if more || s.size <= pooled {
		_ = s.codec.Close() // repeats an error of Read
	}
	s.codec = nil
	s.src.Reset(nil)
}

// rest ends a response, and keeps nothing.
func (s *stream) rest(m Memory) {
	release(m, s.cost)
	s.cost = 0
	s.dropWindow(m)
}

func (s *stream) dropWindow(m Memory) {
	release(m, int64(len(s.buf)))
	if len(s.buf) == windowSize {
		windows.Put((*[windowSize]byte)(s.buf))
	}
	s.buf = nil
}
