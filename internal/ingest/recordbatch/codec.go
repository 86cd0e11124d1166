package recordbatch

// How much memory kafka-go's codecs hold while they decompress. Each of them
// believes the sizes in its input: snappy allocates a block of whatever length
// the block claims, zstd a window of up to 512 MiB, or of the frame's whole
// content, and lz4 two blocks of up to 4 MiB. So those sizes are read here first,
// from the framing alone and without decompressing; a frame that doesn't hold
// together is refused.
//
// Seen in kafka-go 0.4.51, klauspost/compress 1.20.3 and pierrec/lz4 4.1.33; a
// test compares what is allocated with what is said here.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// gzipSize is two Huffman tables with their links, the 32 KiB window, and the
// extra field of a header, which is read and thrown away.
const gzipSize = 160 << 10

var errCut = errors.New("it is cut off")

// codecSize is the most bytes that the codec holds while it reads the payload.
func codecSize(codec int, payload []byte) (int64, error) {
	switch codec {
	case 1:
		return gzipSize, nil
	case 2:
		return snappySize(payload)
	case 3:
		return lz4Size(payload)
	default:
		return zstdSize(payload)
	}
}

// xerial begins the framing of snappy that Kafka's own client writes: then come
// a version, the oldest reader's, and blocks behind their lengths.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialSize = 16

// snappySize adds an input and an output buffer. Without framing the payload is
// one block, and the input buffer grows by doubling.
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

// lz4Size is a buffer for the compressed and one for the decompressed block, and
// where blocks refer to those before them up to 128 KiB and a block more, twice
// for its growth. A batch is one frame: what follows it is refused, as another
// frame could have larger blocks.
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
		if flags&(1<<4) != 0 { // a sum of the block
			n += 4
		}
		if n > int64(len(p)-at) {
			return 0, errCut
		}
		at += int(n)
	}
	if flags&(1<<2) != 0 { // a sum of the content
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

// zstdSize is the largest window of the payload's frames, the space ahead of it,
// and the buffers of one block.
func zstdSize(p []byte) (int64, error) {
	const (
		block = 128 << 10
		fixed = 384 << 10 // tables, literals and input of a block
	)
	var window uint64
	for len(p) > 0 {
		if len(p) < 5 {
			return 0, errCut
		}
		magic := binary.LittleEndian.Uint32(p)
		if magic&^0xf == 0x184D2A50 { // to be skipped
			if len(p) < 8 || uint64(binary.LittleEndian.Uint32(p[4:])) > uint64(len(p)-8) {
				return 0, errCut
			}
			p = p[8+binary.LittleEndian.Uint32(p[4:]):]
			continue
		}
		if magic != 0xFD2FB528 {
			return 0, fmt.Errorf("not a frame")
		}
		w, n, err := zstdHeader(p)
		if err != nil {
			return 0, err
		}
		window = max(window, w)
		rest, err := zstdBlocks(p[n:])
		if err != nil {
			return 0, err
		}
		if p[4]&(1<<2) != 0 { // a sum of the content
			if len(rest) < 4 {
				return 0, errCut
			}
			rest = rest[4:]
		}
		p = rest
	}
	if window > math.MaxInt64/2 {
		return math.MaxInt64, nil
	}
	w := int64(window)
	return w + 3*min(w, block) + fixed, nil
}

// zstdHeader reads the window of a frame, RFC 8878 3.1.1.1, and how long its
// header is. A single segment has its content as its window.
func zstdHeader(p []byte) (window uint64, size int, err error) {
	flags := p[4]
	single := flags&(1<<5) != 0
	size = 5
	descriptor := size
	if !single {
		size++
	}
	size += [...]int{0, 1, 2, 4}[flags&3] // a dictionary's id
	content := size
	width := [...]int{0, 2, 4, 8}[flags>>6]
	if single && width == 0 {
		width = 1
	}
	if size += width; size > len(p) {
		return 0, 0, errCut
	}
	if !single {
		base := uint64(1) << (10 + p[descriptor]>>3)
		return base + base/8*uint64(p[descriptor]&7), size, nil
	}
	var field [8]byte
	copy(field[:], p[content:size])
	window = binary.LittleEndian.Uint64(field[:])
	if width == 2 {
		window += 256
	}
	return max(window, 1<<10), size, nil
}

// zstdBlocks goes past the blocks of a frame, and returns what follows them.
func zstdBlocks(p []byte) ([]byte, error) {
	for {
		if len(p) < 3 {
			return nil, errCut
		}
		h := uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
		n := int(h >> 3)
		if h>>1&3 == 1 { // one byte, repeated
			n = 1
		}
		if p = p[3:]; n > len(p) {
			return nil, errCut
		}
		p = p[n:]
		if h&1 != 0 {
			return p, nil
		}
	}
}
