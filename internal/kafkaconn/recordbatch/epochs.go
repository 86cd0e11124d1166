package recordbatch

import "encoding/binary"

// Epochs returns the leader epochs of the first and the last whole batch of a response, and the offset
// after the last one. ok is false if the response has no whole batch, or one of a format before 2. A batch
// that was passed counts as whole.
func Epochs(records []byte, passed *Passed) (first, last int32, next int64, ok bool) {
	if passed != nil && passed.Err != nil {
		return 0, 0, 0, false
	}
	for len(records) >= headerSize {
		size := int64(int32(binary.BigEndian.Uint32(records[8:]))) + prefixSize
		if records[magicAt] != 2 || size < headerSize {
			return 0, 0, 0, false
		}
		if size > int64(len(records)) && passed == nil {
			break
		}
		last = int32(binary.BigEndian.Uint32(records[epochAt:]))
		if !ok {
			first, ok = last, true
		}
		next = int64(binary.BigEndian.Uint64(records)) + int64(int32(binary.BigEndian.Uint32(records[23:]))) + 1
		records = records[min(size, int64(len(records))):]
	}
	return first, last, next, ok
}
