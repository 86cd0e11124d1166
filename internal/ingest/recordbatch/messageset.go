package recordbatch

// Messages of the formats before Kafka 0.11, magic 0 and 1, as its protocol guide
// describes message sets: topics that are old enough still hold them, and brokers
// hand them out as they lie there.
//
// Every message is a batch of its own here. A compressed one, a wrapper, holds
// messages in its value; its offset is that of the last of them. Of magic 0 they
// carry their offsets; of magic 1 only how they lie to one another, and the last
// one has to be known before the first can be returned.
//
//	offset int64, size int32, CRC-32 (IEEE) of what follows, magic, attributes,
//	in magic 1 the time int64 (ms), key and value behind their lengths int32

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	messageCRCAt   = 12
	messageCRCFrom = 16
	messageAttrsAt = 17
	messageTimeAt  = 18
	minMessage     = prefixSize + 14 // CRC, magic, attributes and two lengths
	minTimed       = minMessage + 8  // of magic 1
	// noTime is Kafka's own word for a record without a time.
	noTime = -1
)

// minSize is the least that a message of the batch's magic takes.
func minSize(magic byte) int {
	if magic == 0 {
		return minMessage
	}
	return minTimed
}

// parseMessage is parseBatch for every magic but 2.
func parseMessage(in []byte) (b batch, size int, err error) {
	b.magic, b.base = in[magicAt], int64(binary.BigEndian.Uint64(in))
	if !b.old() {
		return b, 0, b.corrupt("magic %d is unknown", b.magic)
	}
	length := int64(int32(binary.BigEndian.Uint32(in[8:])))
	if least := minSize(b.magic); length+prefixSize < int64(least) {
		return b, 0, b.corrupt("a size of %d bytes is less than the %d of an empty one", length, least-prefixSize)
	}
	size = int(length + prefixSize)
	if size > len(in) {
		return b, size, errShort
	}
	in = in[:size:size]
	if err := messageSum(in); err != nil {
		return b, 0, b.corrupt("%w", err)
	}
	// Bits that the format doesn't know mean nothing, and none of what they mean in
	// a batch of magic 2.
	b.count, b.maxTime = 1, noTime
	if b.attrs = uint16(in[messageAttrsAt]) & attrCodec; b.magic == 1 {
		b.attrs |= uint16(in[messageAttrsAt]) & attrLogAppendTime
		b.maxTime = int64(binary.BigEndian.Uint64(in[messageTimeAt:]))
	}
	switch {
	case b.base < 0:
		return b, 0, b.corrupt("its offset is negative")
	case b.base == math.MaxInt64:
		return b, 0, b.corrupt("no offset can follow its own")
	case b.codec() > codecLZ4:
		return b, 0, b.corrupt("compression %d is unknown in magic %d", b.codec(), b.magic)
	case b.codec() == 0:
		return b, size, nil
	}
	_, value, err := keyAndValue(in)
	if err != nil {
		return b, 0, b.corrupt("%w", err)
	}
	if value == nil {
		return b, 0, b.corrupt("it is compressed and its value is null")
	}
	b.body = int32(size - len(value))
	return b, size, nil
}

// messageSum checks the CRC of a whole message.
func messageSum(m []byte) error {
	if sum, want := crc32.ChecksumIEEE(m[messageCRCFrom:]), binary.BigEndian.Uint32(m[messageCRCAt:]); sum != want {
		return fmt.Errorf("its CRC is %08x and should be %08x", sum, want)
	}
	return nil
}

// keyAndValue are those of a whole message, which they must fill to its end.
func keyAndValue(m []byte) (key, value []byte, err error) {
	p := minSize(m[magicAt]) - 8
	if key, p = nullable32(m, p); p < 0 {
		return nil, nil, errors.New("its key ends past it")
	}
	if value, p = nullable32(m, p); p < 0 {
		return nil, nil, errors.New("its value ends past it")
	}
	if p != len(m) {
		return nil, nil, fmt.Errorf("%d bytes follow its value", len(m)-p)
	}
	return key, value, nil
}

// nullable32 is nullable behind a length of four bytes.
func nullable32(b []byte, p int) ([]byte, int) {
	if len(b)-p < 4 {
		return nil, -1
	}
	n := int(int32(binary.BigEndian.Uint32(b[p:])))
	if p += 4; n < 0 {
		return nil, p
	}
	if n > len(b)-p {
		return nil, -1
	}
	end := p + n
	return b[p:end:end], end
}

// align finds by how much the offsets of the messages inside a wrapper of magic 1
// are too low, which takes reading it to the last. Where all of it fits the window
// it stays there; what doesn't is decompressed once more: held it would have no
// bound.
func (r *Reader) align(b batch, payload []byte) error {
	window, err := r.stream.fill(r.Memory, nil, len(r.stream.buf))
	whole := err == io.EOF //nolint:errorlint // the end comes bare, see stream.end
	if err != nil && !whole {
		return b.corrupt("%w", noEOF(err))
	}
	r.batch, r.data, r.at = b, window, 0
	last := int64(-1)
	for {
		offset, size, err := r.peekMessage()
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		if offset <= last {
			return b.corrupt("inside it offset %d follows %d", offset, last)
		}
		last = offset
		if err := r.skip(r.at, size); err != nil {
			return err
		}
	}
	if last > b.base {
		return b.corrupt("the last message inside it has offset %d, which is past its own", last)
	}
	r.shift = b.base - last
	if r.data, r.at = window, 0; whole {
		return nil
	}
	r.data = nil
	r.stream.closeCodec(true)
	return r.stream.open(r, b, payload)
}

// peekMessage reads the offset of the next message of the open batch, as it stands
// there, and its size with its prefix, which is 0 at the end of a wrapper.
func (r *Reader) peekMessage() (offset int64, size int, err error) {
	b := &r.batch
	if r.at == len(r.data) {
		data, err := r.stream.fill(r.Memory, nil, 1)
		if r.data, r.at = data, 0; err == io.EOF { //nolint:errorlint // the end comes bare, see stream.end
			return 0, 0, nil
		} else if err != nil {
			return 0, 0, b.corrupt("%w", noEOF(err))
		}
	}
	if err := r.need(minMessage); err != nil {
		return 0, 0, err
	}
	m := r.data[r.at:]
	offset = int64(binary.BigEndian.Uint64(m))
	length := int64(int32(binary.BigEndian.Uint32(m[8:])))
	switch magic := m[magicAt]; {
	case magic > 1:
		return 0, 0, b.corrupt("the message inside it at offset %d has magic %d", offset, magic)
	case length+prefixSize < int64(minSize(magic)):
		return 0, 0, b.corrupt("the message inside it at offset %d has a size of %d bytes, less than an empty one", offset, length)
	case b.codec() != 0 && m[messageAttrsAt]&attrCodec != 0:
		return 0, 0, b.corrupt("the message inside it at offset %d is compressed again", offset)
	}
	return offset, int(length + prefixSize), nil
}

// readMessage reads the next message of the open batch into r.rec. It reports
// false at the end of a wrapper. Before an ErrNoMemory nothing is changed.
func (r *Reader) readMessage() (bool, error) {
	offset, size, err := r.peekMessage()
	if err != nil {
		return false, err
	}
	if size == 0 {
		if r.left = 0; r.delta < 0 {
			return false, r.batch.corrupt("it is compressed and holds no message")
		}
		return false, nil
	}
	oversize := int64(size-prefixSize) > r.maxRecord()
	need := size
	if oversize {
		need = min(size, minTimed)
	}
	if err := r.need(need); err != nil {
		return false, err
	}
	if err := r.startMessage(offset); err != nil {
		return false, err
	}
	rec := &r.rec
	rec.Key, rec.Value, rec.Headers, rec.HeaderCount, rec.Oversize = nil, nil, nil, 0, 0
	if oversize { // it is gone over, as in magic 2
		rec.Oversize = int64(size - prefixSize)
		return true, r.skip(r.at, size)
	}
	m := r.data[r.at : r.at+size : r.at+size]
	if r.batch.codec() != 0 { // else it is the batch, of which the sum was checked
		err = messageSum(m)
	}
	if err == nil {
		rec.Key, rec.Value, err = keyAndValue(m)
	}
	if err != nil {
		return false, r.batch.corrupt("the message at offset %d: %w", rec.Offset, err)
	}
	r.at += size
	return true, nil
}

// startMessage reads offset and time of the next message.
func (r *Reader) startMessage(offset int64) error {
	b := &r.batch
	// Compaction leaves gaps, but keeps the order.
	if offset > b.base-r.shift || offset+r.shift < r.lowest {
		return b.corrupt("inside it is offset %d, which should lie from %d to %d", offset, r.lowest-r.shift, b.base-r.shift)
	}
	m := r.data[r.at:]
	switch {
	case m[magicAt] == 0:
		r.rec.Time = noTime
	case b.logAppendTime():
		r.rec.Time = b.maxTime
	default:
		r.rec.Time = int64(binary.BigEndian.Uint64(m[messageTimeAt:]))
	}
	r.rec.Offset = offset + r.shift
	r.lowest, r.delta = r.rec.Offset+1, 0
	if b.codec() == 0 {
		r.left = 0
	}
	return nil
}
