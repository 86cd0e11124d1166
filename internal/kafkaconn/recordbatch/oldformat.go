package recordbatch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// OldFormatError reports a message in a format from before Kafka 0.11, which is not supported. Brokers send
// records in the format in which they were written.
type OldFormatError struct {
	Magic byte  // 0 or 1
	Time  int64 // Unix ms, of a compressed set the latest; -1 if none, as in all of magic 0
}

func (e *OldFormatError) Error() string {
	return fmt.Sprintf("a message of format %d, from before Kafka 0.11, and only format 2 is read", e.Magic)
}

// In messages of magic 0 and 1. Their CRC-32 has the IEEE polynomial.
const (
	oldCRCAt   = 12
	oldTimeAt  = 18                           // of magic 1
	minOldSize = prefixSize + 4 + 1 + 1 + 2*4 // CRC, magic, attributes, and the lengths of key and value
)

// old returns the error for a message of magic 0 or 1. The message's own CRC distinguishes it from a batch
// with a damaged magic, which no other CRC covers.
func (b *batch) old(m []byte) error {
	if sum, want := crc32.ChecksumIEEE(m[magicAt:]), binary.BigEndian.Uint32(m[oldCRCAt:]); sum != want {
		return b.corrupt("its magic is %d, and by that its CRC is %08x and should be %08x", m[magicAt], sum, want)
	}
	return oldFormat(m)
}

func oldFormat(m []byte) *OldFormatError {
	e := &OldFormatError{Magic: m[magicAt], Time: -1}
	if e.Magic == 1 {
		e.Time = int64(binary.BigEndian.Uint64(m[oldTimeAt:]))
	}
	return e
}
