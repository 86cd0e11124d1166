package recordbatch

// The lz4 of magic 0. Kafka's own producers wrote a wrong sum into the head of its
// frames, over bytes that don't belong to it (KAFKA-3160); others wrote the right
// one. As Kafka's consumer does, the sum is taken to be right there: what matters is
// covered by the message's CRC and the frame's.

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
)

// mendLZ4 is src, which reads the payload, with the right sum in the frame's head.
// The payload itself stays: it may be read again. That the head is whole was seen
// by lz4Size.
func mendLZ4(src *bytes.Reader, payload []byte) io.Reader {
	end := lz4Head(payload[4])
	head := bytes.Clone(payload[:end])
	head[end-1] = byte(xxh32(head[4:end-1]) >> 8)
	src.Reset(payload[end:])
	return io.MultiReader(bytes.NewReader(head), src)
}

// lz4Head is how many bytes come before a frame's first block: the magic number,
// flags, block size, what the flags ask for, and the sum of all but the first.
func lz4Head(flags byte) int {
	size := 7
	if flags&(1<<3) != 0 { // the content's size
		size += 8
	}
	if flags&1 != 0 { // a dictionary's id
		size += 4
	}
	return size
}

// xxh32 is xxHash32 with seed 0 of less than 16 bytes: a frame's head has no more.
func xxh32(p []byte) uint32 {
	const prime1, prime2, prime3, prime4, prime5 uint32 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h := prime5 + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*prime3, 17) * prime4
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
