package recordbatch

// A batch that exceeds the memory for one batch. Only its header is kept. The CRC of a batch covers its
// last offset, so the whole batch is read and its CRC compared before the batch is skipped.

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Passed is a batch that was skipped; only its header is kept.
type Passed struct {
	Size  int64 // bytes of the batch
	Limit int64 // largest allowed size of a batch, bytes
	// Err is an ErrCorrupt or an OldFormatError. Next returns it.
	Err error
}

// Size returns the size, in bytes, of the batch at the start of records, or 0 if records is shorter than a
// header.
func Size(records []byte) int64 {
	if len(records) < headerSize {
		return 0
	}
	return int64(int32(binary.BigEndian.Uint32(records[8:]))) + prefixSize
}

// Header returns the part of records that Pass does not overwrite.
func Header(records []byte) []byte { return records[:headerSize:headerSize] }

// Pass reads a batch to its end. records has the start of the batch, at least a header, and rest has what
// follows. Pass uses the space of records after the header as its read buffer. It returns an error only if
// rest does.
func Pass(records []byte, rest io.Reader, limit int64) (*Passed, error) {
	p := &Passed{Size: Size(records), Limit: limit}
	b := batch{base: int64(binary.BigEndian.Uint64(records))}
	table, from, at := castagnoli, crcFrom, crcAt
	magic := records[magicAt]
	if magic < 2 {
		table, from, at = crc32.IEEETable, magicAt, oldCRCAt
	}
	want := binary.BigEndian.Uint32(records[at:])
	sum := crc32.Update(0, table, records[from:])
	space := records[headerSize:]
	for left := p.Size - int64(len(records)); left > 0; {
		n, err := rest.Read(space[:min(left, int64(len(space)))])
		sum = crc32.Update(sum, table, space[:n])
		if left -= int64(n); err != nil && left > 0 {
			return nil, fmt.Errorf("read past a record batch of %d bytes: %w", p.Size, noEOF(err))
		}
	}
	switch {
	case magic > 2:
		p.Err = b.corrupt("magic %d is unknown", magic)
	case sum != want:
		p.Err = b.corrupt("its CRC is %08x and should be %08x, by magic %d", sum, want, magic)
	case magic < 2:
		p.Err = oldFormat(records)
	default:
		b.header(records)
		p.Err = b.check()
	}
	return p, nil
}

// ResetPassed starts reading a response whose first batch was skipped; header is that batch's header.
func (r *Reader) ResetPassed(header []byte, p *Passed, from int64, aborted []Aborted) {
	r.Reset(header, from, aborted)
	r.passed = p
}

// passedBatch skips the batch. whole reports that rec stands for it.
func (r *Reader) passedBatch(p *Passed) (whole bool, err error) {
	if p.Err != nil {
		return false, p.Err
	}
	b := batch{base: int64(binary.BigEndian.Uint64(r.in))}
	b.header(r.in)
	if whole = r.wants(&b); whole && b.control() {
		return false, b.corrupt("a control batch of %d bytes", p.Size)
	}
	if whole {
		r.standFor(b, p.Size, p.Limit, false)
	}
	r.in, r.passed = nil, nil
	r.took(b)
	r.pos = max(r.pos, b.last()+1)
	return whole, nil
}
