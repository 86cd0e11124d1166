package recordbatch

// The memory that zstd takes (RFC 8878), and the reduction of its window to the size that a payload needs.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

const (
	zstdBlock = 128 << 10 // largest content of a block, in bytes
	zstdFixed = 384 << 10 // tables, literals and input of a block, in bytes
	// descriptorAt is the position of the window descriptor in a payload's first frame.
	descriptorAt = 5
)

// zstdSize adds the largest window of the payload's frames, the space ahead of it, and the buffers of one
// block. If the first frame declares a window larger than both widestAsIs and its content, zstdSize assumes
// a smaller window and returns its descriptor. Kafka's clients write one frame per batch.
func zstdSize(payload []byte) (size int64, descriptor byte, err error) {
	var window uint64
	for p := payload; len(p) > 0; {
		if len(p) < 5 {
			return 0, 0, errCut
		}
		magic := binary.LittleEndian.Uint32(p)
		if magic&^0xf == 0x184D2A50 { // a frame to skip
			if len(p) < 8 || uint64(binary.LittleEndian.Uint32(p[4:])) > uint64(len(p)-8) {
				return 0, 0, errCut
			}
			p = p[8+binary.LittleEndian.Uint32(p[4:]):]
			continue
		}
		if magic != 0xFD2FB528 {
			return 0, 0, fmt.Errorf("not a frame")
		}
		f, err := zstdHeader(p)
		if err != nil {
			return 0, 0, err
		}
		content, rest, err := zstdBlocks(p[f.size:])
		if err != nil {
			return 0, 0, err
		}
		if first := len(p) == len(payload); first && !f.single && f.window > widestAsIs {
			if d, narrower := narrowed(min(content, f.content)); narrower < f.window {
				descriptor, f.window = d, narrower
			}
		}
		window = max(window, f.window)
		if p[4]&(1<<2) != 0 { // a checksum of the content
			if len(rest) < 4 {
				return 0, 0, errCut
			}
			rest = rest[4:]
		}
		p = rest
	}
	if window > math.MaxInt64/2 {
		return math.MaxInt64, descriptor, nil
	}
	w := int64(window)
	return w + 3*min(w, zstdBlock) + zstdFixed, descriptor, nil
}

// widestAsIs is the largest window, in bytes, that is never reduced: the window of level 19.
const widestAsIs = 8 << 20

// narrowed returns the smallest window without a mantissa for content bytes, and its descriptor.
func narrowed(content uint64) (descriptor byte, window uint64) {
	exponent := bits.Len64(max(content, zstdBlock)-1) - 10
	if exponent > 31 { // more than a descriptor can express
		return 0, math.MaxUint64
	}
	return byte(exponent) << 3, 1 << (10 + exponent)
}

// narrow reads a payload, and replaces the window descriptor of its first frame.
type narrow struct {
	src        *bytes.Reader
	descriptor byte
}

func (n *narrow) Read(b []byte) (int, error) {
	at := descriptorAt - (n.src.Size() - int64(n.src.Len()))
	k, err := n.src.Read(b)
	if at >= 0 && at < int64(k) {
		b[at] = n.descriptor
	}
	return k, err //nolint:wrapcheck // io.EOF, as it is
}

// zstdFrame is the header of a frame.
type zstdFrame struct {
	single  bool   // its content is one segment, which is also its window
	window  uint64 // bytes
	content uint64 // bytes; math.MaxUint64 if the header does not give it
	size    int    // of the header
}

// zstdHeader reads the header of a frame (RFC 8878 3.1.1.1).
func zstdHeader(p []byte) (zstdFrame, error) {
	flags := p[4]
	f := zstdFrame{single: flags&(1<<5) != 0, content: math.MaxUint64, size: descriptorAt}
	if !f.single {
		f.size++
	}
	f.size += [...]int{0, 1, 2, 4}[flags&3] // a dictionary's id
	at := f.size
	width := [...]int{0, 2, 4, 8}[flags>>6]
	if f.single && width == 0 {
		width = 1
	}
	if f.size += width; f.size > len(p) {
		return f, errCut
	}
	if width > 0 {
		var field [8]byte
		copy(field[:], p[at:f.size])
		f.content = binary.LittleEndian.Uint64(field[:])
		if width == 2 {
			f.content += 256
		}
	}
	if f.single {
		f.window = max(f.content, 1<<10)
		return f, nil
	}
	base := uint64(1) << (10 + p[descriptorAt]>>3)
	f.window = base + base/8*uint64(p[descriptorAt]&7)
	return f, nil
}

// zstdBlocks skips the blocks of a frame. It returns the most content that they can have, in bytes, and the
// bytes that follow them.
func zstdBlocks(p []byte) (content uint64, rest []byte, err error) {
	for {
		if len(p) < 3 {
			return 0, nil, errCut
		}
		h := uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
		n := int(h >> 3)
		switch h >> 1 & 3 {
		case 1: // one byte, repeated
			content += uint64(n)
			n = 1
		case 2:
			content += zstdBlock
		default:
			content += uint64(n)
		}
		if p = p[3:]; n > len(p) {
			return 0, nil, errCut
		}
		p = p[n:]
		if h&1 != 0 {
			return content, p, nil
		}
	}
}
