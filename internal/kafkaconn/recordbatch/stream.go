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
	// windowSize is what a window has at first. It grows to what a record needs.
	windowSize = 64 << 10
	// pooled is the largest codec, in bytes, that goes back to kafka-go's pool at
	// the end of a response. The pool isn't part of anybody's budget, so a larger
	// one is left to the garbage collector.
	pooled = 1 << 20
)

// windows are those that nobody reads through. They aren't charged: there are no more
// than are read through at once, and the garbage collector takes what is over.
var windows = sync.Pool{New: func() any { return new([windowSize]byte) }}

// stream holds a codec while a batch is open. What it was charged for stays charged to
// the end of the response, for the batches to come, and no longer: whoever waits for the
// next response holds nothing.
type stream struct {
	// src has ReadByte, or gzip would put a buffer before it, and no Bytes, or zstd
	// would decode all of it in one go.
	src    bytes.Reader
	narrow narrow // of src
	codec  io.ReadCloser
	err    error // what the codec said last
	size   int64 // bytes that the open codec may hold
	cost   int64 // bytes charged for codecs
	buf    []byte
	one    [1]byte // for ended: buf has the last record
}

func take(m Memory, n int64) bool { return m == nil || m.Take(n) }

func release(m Memory, n int64) {
	if m != nil && n > 0 {
		m.Release(n)
	}
}

// open makes ready to read the records of a compressed batch. After an
// ErrNoMemory it may be called again.
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

// tooLargeError is a codec that would hold more than MaxCodec, in bytes.
type tooLargeError struct{ size, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it takes %d bytes to decompress, and at most %d are allowed", e.size, e.limit)
}

// fill reads until n bytes are there, unread among them, which is a part of the
// window. It moves the window, and grows it where n doesn't fit.
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

// read reads at least a byte, or says why not.
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

// discard goes over n bytes.
func (s *stream) discard(n int) error {
	for n > 0 {
		k, err := s.read(s.buf[:min(n, len(s.buf))])
		if n -= k; err != nil {
			return fmt.Errorf("%d bytes are missing: %w", n, noEOF(err))
		}
	}
	return nil
}

// ended reports whether nothing follows. An error of the codec is an end as well: all
// records are there, and the batch's CRC covers its bytes. Kafka's own consumer doesn't
// check LZ4's sum of the content either.
func (s *stream) ended() bool {
	n, _ := s.read(s.one[:])
	return n == 0
}

// noEOF is for an end that comes too early: to those who call Next, io.EOF would
// say that all is read.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// closeCodec ends a batch; more says that another of this response may follow.
func (s *stream) closeCodec(more bool) {
	if s.codec == nil {
		return
	}
	if more || s.size <= pooled {
		_ = s.codec.Close() // only an error of Read's again
	}
	s.codec = nil
	s.src.Reset(nil)
}

// rest ends a response: nothing is kept.
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
