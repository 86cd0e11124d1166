package recordbatch

import "encoding/binary"

// Epochs returns the leader epochs of the first and the last whole batch of a response, and the offset
// after the last one. It is false if the response has no whole batch, or one of a format before 2.
func Epochs(records []byte) (first, last int32, next int64, ok bool) {
	for len(records) >= headerSize {
		size := int64(int32(binary.BigEndian.Uint32(records[8:]))) + prefixSize
		if records[magicAt] != 2 || size < headerSize {
			return 0, 0, 0, false
		}
		if size > int64(len(records)) {
			break
		}
		last = int32(binary.BigEndian.Uint32(records[epochAt:]))
		if !ok {
			first, ok = last, true
		}
		next = int64(binary.BigEndian.Uint64(records)) + int64(int32(binary.BigEndian.Uint32(records[23:]))) + 1
		records = records[size:]
	}
	return first, last, next, ok
}
