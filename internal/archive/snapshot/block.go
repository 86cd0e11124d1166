package snapshot

// Blocks: records, packed, with a checksum.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

const (
	magic     = "lbsnap01"
	blockHead = 16
	// blockSize is from how many bytes of records on a block is written.
	blockSize = 256 << 10
	// mostBlock is how many bytes of records a block may have: a record is never cut.
	mostBlock = 8 << 20
)

// blockWriter packs records into blocks.
type blockWriter struct {
	to      io.Writer
	encoder *zstd.Encoder
	records []byte
	packed  []byte
	written int64
}

func newBlockWriter(to io.Writer) (*blockWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(blockSize))
	if err != nil {
		return nil, fmt.Errorf("make an encoder: %w", err)
	}
	w := &blockWriter{to: to, encoder: encoder}
	return w, w.write([]byte(magic))
}

func (w *blockWriter) write(b []byte) error {
	n, err := w.to.Write(b)
	w.written += int64(n)
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	return nil
}

// full writes a block if there is enough for one.
func (w *blockWriter) full() error {
	if len(w.records) < blockSize {
		return nil
	}
	return w.flush()
}

func (w *blockWriter) flush() error {
	if len(w.records) == 0 {
		return nil
	}
	if len(w.records) > mostBlock {
		return fmt.Errorf("write a snapshot: a record of %d bytes is too long", len(w.records))
	}
	w.packed = w.encoder.EncodeAll(w.records, append(w.packed[:0], make([]byte, blockHead)...))
	binary.LittleEndian.PutUint32(w.packed, uint32(len(w.packed)-blockHead)) //nolint:gosec // some MB
	binary.LittleEndian.PutUint32(w.packed[4:], uint32(len(w.records)))      //nolint:gosec // some MB
	binary.LittleEndian.PutUint64(w.packed[8:], blockSum(w.packed))
	w.records = w.records[:0]
	return w.write(w.packed)
}

// blockSum is the checksum of a block.
func blockSum(block []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(block[:8])
	_, _ = d.Write(block[blockHead:])
	return d.Sum64()
}

// blockReader reads blocks, one after another.
type blockReader struct {
	from    io.Reader
	decoder *zstd.Decoder
	at      int64 // where the block begins
	next    int64 // where the one after it does
	packed  []byte
	records []byte
}

func newBlockReader(from io.Reader) (*blockReader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostBlock), zstd.WithDecoderMaxWindow(mostBlock))
	if err != nil {
		return nil, fmt.Errorf("make a decoder: %w", err)
	}
	r := &blockReader{from: from, decoder: decoder, next: int64(len(magic))}
	var begin [len(magic)]byte
	if _, err := io.ReadFull(from, begin[:]); err != nil {
		return nil, r.short(err, "it ends before it begins")
	}
	if string(begin[:]) != magic {
		return nil, r.damaged("it doesn't begin as a snapshot of this format does")
	}
	return r, nil
}

func (r *blockReader) damaged(format string, args ...any) error {
	return &DamagedError{At: r.at, What: fmt.Sprintf(format, args...)}
}

// short is what an error of a read is, which may be that there is no more.
func (r *blockReader) short(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.damaged("%s", what)
	}
	return fmt.Errorf("read a snapshot: %w", err)
}

// block reads the next block's records, which are good until the next call.
func (r *blockReader) block() ([]byte, error) {
	r.at = r.next
	r.packed = append(r.packed[:0], make([]byte, blockHead)...)
	if _, err := io.ReadFull(r.from, r.packed); err != nil {
		return nil, r.short(err, "it ends before its end record")
	}
	packed, length := binary.LittleEndian.Uint32(r.packed), binary.LittleEndian.Uint32(r.packed[4:])
	if packed > mostBlock || length > mostBlock || length == 0 {
		return nil, r.damaged("a block of %d bytes, packed into %d", length, packed)
	}
	r.packed = append(r.packed, make([]byte, packed)...)
	if _, err := io.ReadFull(r.from, r.packed[blockHead:]); err != nil {
		return nil, r.short(err, "it ends in the middle of a block")
	}
	if sum := binary.LittleEndian.Uint64(r.packed[8:]); sum != blockSum(r.packed) {
		return nil, r.damaged("the block's checksum is %016x, and its bytes come to %016x", sum, blockSum(r.packed))
	}
	var err error
	if r.records, err = r.decoder.DecodeAll(r.packed[blockHead:], r.records[:0]); err != nil {
		return nil, r.damaged("the block can't be unpacked: %v", err)
	}
	if len(r.records) != int(length) {
		return nil, r.damaged("the block has %d bytes, and was to have %d", len(r.records), length)
	}
	r.next += int64(len(r.packed))
	return r.records, nil
}

// ended reports what comes after the last block.
func (r *blockReader) ended() error {
	r.at = r.next
	var one [1]byte
	switch n, err := io.ReadFull(r.from, one[:]); {
	case n > 0:
		return r.damaged("something is behind its end record")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("read a snapshot: %w", err)
	}
}
