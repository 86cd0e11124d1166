package fetch

// The layout of a fetch response with one partition, versions 4 to 11 (Kafka's protocol guide). Every
// length is compared with the remaining bytes. If a quota is used up, a broker answers with a throttle time
// and no topics (KIP-219).

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// abortedSize is the size of an aborted transaction: producer and first offset.
const abortedSize = 16

// parse reads a response, without its length, into res, and returns the bytes of its aborted transactions.
// lacks is the number of bytes missing at the end of b, which belong to the records.
func parse(b []byte, lacks int64, version int16, correlation int32, topic string, partition int32, res *Response) (aborted []byte, err error) {
	r := reader{b: b, lacks: lacks}
	if id := r.int32(); id != correlation {
		return nil, fmt.Errorf("%w: it answers request %d, and %d was sent", ErrMalformed, id, correlation)
	}
	throttled := time.Duration(r.int32()) * time.Millisecond
	var code int16
	if version >= 7 {
		code = r.int16()
		r.int32() // session
	}
	topics := r.int32()
	if r.short {
		return nil, r.cut("its head")
	}
	*res = Response{HighWatermark: -1, LastStable: -1, LogStart: -1, Throttled: min(max(throttled, 0), MaxThrottle)}
	switch {
	case code != 0:
		res.Err = kafka.Error(code)
		return nil, nil
	case topics == 0 && throttled > 0:
		if len(r.b) > 0 {
			return nil, r.more()
		}
		return nil, nil
	case topics != 1:
		return nil, fmt.Errorf("%w: it has %d topics", ErrMalformed, topics)
	}
	name := r.take(int64(r.int16()))
	partitions, number := r.int32(), r.int32()
	switch {
	case r.short:
		return nil, r.cut("its topic")
	case partitions != 1:
		return nil, fmt.Errorf("%w: it has %d partitions", ErrMalformed, partitions)
	case string(name) != topic || number != partition:
		return nil, fmt.Errorf("%w: it is about %.300q/%d", ErrMalformed, name, number)
	}
	return r.partition(version, res)
}

func (r *reader) partition(version int16, res *Response) (aborted []byte, err error) {
	if code := r.int16(); code != 0 {
		res.Err = kafka.Error(code)
	}
	res.HighWatermark, res.LastStable = r.int64(), r.int64()
	if version >= 5 {
		res.LogStart = r.int64()
	}
	if n := r.int32(); n > 0 { // -1 is null
		aborted = r.take(int64(n) * abortedSize)
	}
	if version >= 11 {
		r.int32() // preferred replica
	}
	if n := r.int32(); n > 0 { // -1 is null
		res.Records = r.take(int64(n) - r.lacks)
	}
	if r.short {
		return nil, r.cut("its partition")
	}
	if len(r.b) > 0 {
		return nil, r.more()
	}
	return aborted, nil
}

// reader takes fields from the front of b. After b is too short it returns zeros.
type reader struct {
	b     []byte
	lacks int64
	short bool
}

func (r *reader) cut(what string) error {
	return fmt.Errorf("%w: %s is cut off", ErrMalformed, what)
}

func (r *reader) more() error {
	return fmt.Errorf("%w: %d bytes follow it", ErrMalformed, len(r.b))
}

func (r *reader) take(n int64) []byte {
	if r.short || n < 0 || n > int64(len(r.b)) {
		r.short = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}
