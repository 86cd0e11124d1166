package recordbatch

// The header of a batch: the positions of its fields, and their valid values.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	prefixSize = 12 // base offset and batch length, which the length does not include
	magicAt    = 16 // in messages of every format
	crcAt      = 17
	epochAt    = 12 // of the leader that wrote the batch
	crcFrom    = 21
	headerSize = 61
)

const (
	attrCodec         = 7
	attrLogAppendTime = 1 << 3
	attrTransactional = 1 << 4
	attrControl       = 1 << 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errShort reports a batch whose end is missing, or even a part of its header.
var errShort = errors.New("short")

type batch struct {
	base      int64
	lastDelta int64
	firstTime int64
	maxTime   int64
	producer  int64
	count     int
	epoch     int32 // of the leader that wrote it; -1 if none
	attrs     uint16
}

func (b *batch) last() int64         { return b.base + b.lastDelta }
func (b *batch) codec() int          { return int(b.attrs & attrCodec) }
func (b *batch) control() bool       { return b.attrs&attrControl != 0 }
func (b *batch) transactional() bool { return b.attrs&attrTransactional != 0 }
func (b *batch) logAppendTime() bool { return b.attrs&attrLogAppendTime != 0 }

// corrupt returns an error about the batch; a %w in format keeps a cause.
func (b *batch) corrupt(format string, args ...any) error {
	return fmt.Errorf("record batch at offset %d: %w: %w", b.base, ErrCorrupt, fmt.Errorf(format, args...))
}

// parseBatch reads the header of the first batch in in, and checks its CRC. With errShort, size is the
// number of bytes needed, as far as it is known.
func parseBatch(in []byte) (b batch, size int, err error) {
	if len(in) <= magicAt {
		return b, headerSize, errShort
	}
	b.base = int64(binary.BigEndian.Uint64(in))
	length := int64(int32(binary.BigEndian.Uint32(in[8:])))
	magic, least := in[magicAt], int64(headerSize)
	if magic < 2 {
		least = minOldSize
	}
	switch {
	case magic > 2:
		return b, 0, b.corrupt("magic %d is unknown", magic)
	case length+prefixSize < least:
		return b, 0, b.corrupt("a length of %d bytes is less than a header's", length)
	case length+prefixSize > int64(len(in)):
		return b, int(length + prefixSize), errShort
	}
	size = int(length + prefixSize)
	if magic < 2 {
		return b, 0, b.old(in[:size])
	}
	if sum, want := crc32.Checksum(in[crcFrom:size], castagnoli), binary.BigEndian.Uint32(in[crcAt:]); sum != want {
		return b, 0, b.corrupt("its CRC is %08x and should be %08x", sum, want)
	}
	b.header(in)
	return b, size, b.check()
}

// header reads the fields after the base offset.
func (b *batch) header(in []byte) {
	b.epoch = int32(binary.BigEndian.Uint32(in[epochAt:]))
	b.attrs = binary.BigEndian.Uint16(in[21:])
	b.lastDelta = int64(int32(binary.BigEndian.Uint32(in[23:])))
	b.firstTime = int64(binary.BigEndian.Uint64(in[27:]))
	b.maxTime = int64(binary.BigEndian.Uint64(in[35:]))
	b.producer = int64(binary.BigEndian.Uint64(in[43:]))
	b.count = int(int32(binary.BigEndian.Uint32(in[57:])))
}

func (b *batch) check() error {
	switch {
	case b.base < 0:
		return b.corrupt("its offset is negative")
	case b.lastDelta < 0:
		return b.corrupt("its last offset delta, %d, is negative", b.lastDelta)
	case b.base > math.MaxInt64-1-b.lastDelta:
		return b.corrupt("its offsets overflow")
	case b.count < 0:
		return b.corrupt("it counts %d records", b.count)
	case int64(b.count) > b.lastDelta+1: // each record has its own offset
		return b.corrupt("it counts %d records in %d offsets", b.count, b.lastDelta+1)
	case b.codec() >= len(codecNames):
		return b.corrupt("compression %d is unknown", b.codec())
	}
	return nil
}
