package recordbatch

// A record inside a batch: varints, key, value and headers. The record's length limits every length in it,
// and the batch limits the record's.

import "fmt"

// maxLength32 is the most bytes of a 32-bit varint. Every record has more bytes than that, so this many can
// always be read.
const maxLength32 = 5

// maxStart is the most bytes before a record's key: attributes, time delta and offset delta.
const maxStart = 1 + 10 + 5

// readRecord reads the next record of the open batch into r.rec. If it returns ErrNoMemory it has changed
// nothing.
func (r *Reader) readRecord() error {
	if err := r.need(maxLength32); err != nil {
		return err
	}
	n, p := varint32(r.data, r.at)
	if p < 0 || n < 0 {
		return r.batch.corrupt("record %d has an invalid length", r.batch.count-r.left)
	}
	size, head := int(n), p-r.at
	if int64(size) > r.maxRecord() {
		return r.passRecord(size, head)
	}
	if err := r.need(head + size); err != nil {
		return err
	}
	start := r.at + head
	body := r.data[start : start+size : start+size]
	p, err := r.startRecord(body)
	if err != nil {
		return err
	}
	if err := r.rec.parse(body, p); err != nil {
		return r.batch.corrupt("record at offset %d: %w", r.rec.Offset, err)
	}
	r.at = start + size
	r.left--
	return nil
}

// startRecord reads the fields before the key, and returns the position of the key.
func (r *Reader) startRecord(body []byte) (int, error) {
	b := &r.batch
	timeDelta, p := varint64(body, 1) // after the attributes, none of which is defined
	if p < 0 {
		return 0, b.corrupt("the time of record %d is cut off", b.count-r.left)
	}
	delta, p := varint32(body, p)
	if p < 0 {
		return 0, b.corrupt("the offset of record %d is cut off", b.count-r.left)
	}
	// Compaction leaves gaps, but keeps the order.
	if int64(delta) <= r.delta || int64(delta) > b.lastDelta {
		return 0, b.corrupt("offset delta %d follows %d, the last being %d", delta, r.delta, b.lastDelta)
	}
	r.delta = int64(delta)
	r.rec.Offset = b.base + r.delta
	r.rec.Time = b.firstTime + timeDelta
	if b.logAppendTime() {
		r.rec.Time = b.maxTime
	}
	return p, nil
}

// passRecord skips a record that is larger than MaxRecord. It reads only the fields before the key.
func (r *Reader) passRecord(size, head int) error {
	if err := r.need(head + min(size, maxStart)); err != nil {
		return err
	}
	start := r.at + head
	if _, err := r.startRecord(r.data[start:min(len(r.data), start+size)]); err != nil {
		return err
	}
	if inData := len(r.data) - start; inData >= size {
		r.at = start + size
	} else {
		if r.batch.codec() == 0 {
			return r.batch.corrupt("a record ends past the batch")
		}
		r.data, r.at = nil, 0
		if err := r.stream.discard(size - inData); err != nil {
			return r.batch.corrupt("a record of %d bytes: %w", size, err)
		}
	}
	rec := &r.rec
	rec.Key, rec.Value, rec.Headers, rec.HeaderCount, rec.Oversize, rec.Whole = nil, nil, nil, 0, int64(size), nil
	r.left--
	return nil
}

// parse reads key, value and headers, which must fill the rest of body.
func (rec *Record) parse(body []byte, p int) error {
	rec.Oversize, rec.Whole = 0, nil
	if rec.Key, p = nullable(body, p); p < 0 {
		return fmt.Errorf("its key ends past it")
	}
	if rec.Value, p = nullable(body, p); p < 0 {
		return fmt.Errorf("its value ends past it")
	}
	count, p := varint32(body, p)
	// A header has at least two bytes, so a count that is too large fails here.
	if p < 0 || count < 0 || int(count) > (len(body)-p)/2 {
		return fmt.Errorf("it counts headers that it can't hold")
	}
	rec.HeaderCount, rec.Headers = int(count), body[p:]
	for range count {
		var key []byte
		if key, p = nullable(body, p); p < 0 || key == nil {
			return fmt.Errorf("a header's key ends past it, or is null")
		}
		if _, p = nullable(body, p); p < 0 {
			return fmt.Errorf("a header's value ends past it")
		}
	}
	if p != len(body) {
		return fmt.Errorf("%d bytes follow its headers", len(body)-p)
	}
	return nil
}

// EachHeader calls f for every header in order. A null value is nil. The slices are valid as long as the
// record.
func (rec *Record) EachHeader(f func(key, value []byte)) {
	p := 0
	for range rec.HeaderCount {
		var key, value []byte
		if key, p = nullable(rec.Headers, p); p < 0 {
			return
		}
		if value, p = nullable(rec.Headers, p); p < 0 {
			return
		}
		f(key, value)
	}
}

// nullable reads bytes preceded by their length. A negative length means null, as in Kafka's own client. It
// returns the position after the bytes, which is negative if they end after b.
func nullable(b []byte, p int) ([]byte, int) {
	n, p := varint32(b, p)
	if p < 0 || int(n) > len(b)-p {
		return nil, -1
	}
	if n < 0 {
		return nil, p
	}
	end := p + int(n)
	return b[p:end:end], end
}

// varint32 reads a zigzag varint at b[p:]. It returns the position after it, which is negative if the
// varint is cut off, longer than 5 bytes or out of range.
func varint32(b []byte, p int) (int32, int) {
	if uint(p) < uint(len(b)) && b[p] < 0x80 {
		u := uint32(b[p])
		return int32(u>>1) ^ -int32(u&1), p + 1
	}
	u, p := uvarint(b, p, maxLength32)
	if u > 1<<32-1 {
		return 0, -1
	}
	return int32(uint32(u)>>1) ^ -int32(u&1), p
}

// varint64 is varint32 for 64 bits and 10 bytes.
func varint64(b []byte, p int) (int64, int) {
	if uint(p) < uint(len(b)) && b[p] < 0x80 {
		u := uint64(b[p])
		return int64(u>>1) ^ -int64(u&1), p + 1
	}
	u, p := uvarint(b, p, 10)
	return int64(u>>1) ^ -int64(u&1), p
}

func uvarint(b []byte, p, longest int) (uint64, int) {
	if p < 0 {
		return 0, -1
	}
	var u uint64
	for i := range min(longest, len(b)-p) {
		c := b[p+i]
		if i == 9 && c > 1 {
			return 0, -1
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return u, p + i + 1
		}
	}
	return 0, -1
}
