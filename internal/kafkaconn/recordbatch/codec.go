package recordbatch

// The memory that kafka-go's codecs take to decompress a payload. Each codec trusts the sizes in its input:
// snappy allocates a block of the length that the block states, zstd a window of up to 512 MiB or of the
// frame's whole content, and lz4 two blocks of up to 4 MiB. So this file reads these sizes first, from the
// framing alone and without decompression, and refuses inconsistent frames.
//
// A zstd frame may declare a window that is far larger than its content: Kafka's own clients declare 128
// MiB at level 22, even for 80 bytes. The blocks limit the content, and no match reaches further back than
// that, so a smaller window suffices.
//
// Observed in kafka-go 0.4.51, klauspost/compress 1.20.3 and pierrec/lz4 4.1.33. A test compares the actual
// allocations with the computed sizes.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// gzipSize covers two Huffman tables with their links, the 32 KiB window, and the extra field of a header,
// which is read and discarded.
const gzipSize = 160 << 10

var errCut = errors.New("it is cut off")

// codecSize returns the most bytes that the codec takes to read the payload. If descriptor is not zero, the
// payload must be read with that window descriptor (see narrow).
func codecSize(codec int, payload []byte) (size int64, descriptor byte, err error) {
	switch codec {
	case 1:
		return gzipSize, 0, nil
	case 2:
		size, err = snappySize(payload)
	case 3:
		size, err = lz4Size(payload)
	default:
		return zstdSize(payload)
	}
	return size, 0, err
}

// xerial is the start of the snappy framing of Kafka's own client. A version, the oldest compatible
// version, and blocks with their lengths follow.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialSize = 16

// snappySize adds an input and an output buffer. Without framing the payload is one block, and the input
// buffer grows by doubling.
func snappySize(p []byte) (int64, error) {
	const align = 32 << 10
	if len(p) < xerialSize || !bytes.HasPrefix(p, xerial) {
		out, err := snappyBlock(p)
		return align + 2*int64(len(p)) + out, err
	}
	var in, out int64
	for p = p[xerialSize:]; len(p) > 0; {
		if len(p) < 4 {
			return 0, errCut
		}
		n := int64(binary.BigEndian.Uint32(p))
		if p = p[4:]; n > int64(len(p)) {
			return 0, errCut
		}
		size, err := snappyBlock(p[:n])
		if err != nil {
			return 0, err
		}
		in, out, p = max(in, n), max(out, size), p[n:]
	}
	return align + in + out, nil
}

func snappyBlock(p []byte) (int64, error) {
	size, n := binary.Uvarint(p)
	if n <= 0 || size > math.MaxUint32 {
		return 0, fmt.Errorf("a block without a size")
	}
	return int64(size), nil
}

// lz4Size adds a buffer for the compressed and one for the decompressed block. If blocks refer to earlier
// ones, it adds up to 128 KiB and one more block, twice because that buffer grows. A batch is one frame:
// further frames are refused, since they could have larger blocks.
func lz4Size(p []byte) (int64, error) {
	if len(p) < 7 {
		return 0, errCut
	}
	if binary.LittleEndian.Uint32(p) != 0x184D2204 {
		return 0, fmt.Errorf("not a frame")
	}
	flags, index := p[4], p[5]>>4&7
	if index < 4 {
		return 0, fmt.Errorf("block size %d is unknown", index)
	}
	block := int64(1) << (8 + 2*index)
	at := 7
	if flags&(1<<3) != 0 { // the content's size
		at += 8
	}
	if flags&1 != 0 { // a dictionary's id
		at += 4
	}
	for {
		if len(p)-at < 4 {
			return 0, errCut
		}
		n := int64(binary.LittleEndian.Uint32(p[at:]) &^ (1 << 31))
		end := binary.LittleEndian.Uint32(p[at:]) == 0
		if at += 4; end {
			break
		}
		if flags&(1<<4) != 0 { // a checksum of the block
			n += 4
		}
		if n > int64(len(p)-at) {
			return 0, errCut
		}
		at += int(n)
	}
	if flags&(1<<2) != 0 { // a checksum of the content
		at += 4
	}
	if at != len(p) {
		return 0, fmt.Errorf("it ends at byte %d of %d", at, len(p))
	}
	size := 2*block + 16<<10
	if flags&(1<<5) == 0 {
		size += 2 * (128<<10 + block)
	}
	return size, nil
}
