package deadletter

import (
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// deadLetter is a record to be written. Sending consumes the bytes of a kafka-go record, so each try makes a
// new one from this.
type deadLetter struct {
	offset     int64 // the original's
	time       time.Time
	key, value []byte
	headers    []kafka.Header // the original's headers, then the dead letter's
	ours       int            // number of the dead letter's headers
}

func (o *Outbox) deadLetter(rec *recordbatch.Record, id []byte, reason event.Reason, message string, keep bool) deadLetter {
	bytes := func(b []byte) []byte {
		if keep && b != nil {
			return append([]byte{}, b...)
		}
		return b
	}
	// The dead letter has the time of writing. With the original's time the broker might delete it as too old,
	// or refuse it as too far in the future.
	l := deadLetter{offset: rec.Offset, time: time.Now(), key: bytes(rec.Key), value: bytes(rec.Value)}
	last := rec.Offset
	if rec.Whole != nil {
		last = rec.Whole.Last
	} else if rec.Oversize > 0 {
		message = fmt.Sprintf("%s (%d bytes; the original is at its source offset)", message, rec.Oversize)
	}
	copied, dropped := 0, 0
	rec.EachHeader(func(key, value []byte) {
		if copied += len(key) + len(value); len(l.headers) == maxHeaders || copied > maxHeaderBytes {
			dropped++
			return
		}
		l.headers = append(l.headers, kafka.Header{Key: string(key), Value: bytes(value)})
	})
	if dropped > 0 {
		l.headers = append(l.headers, kafka.Header{Key: HeaderDropped, Value: strconv.AppendInt(nil, int64(dropped), 10)})
	}
	own := len(l.headers)
	from := Origin{Reason: string(reason), Message: message, Topic: o.Topic, Partition: o.Number, Offset: rec.Offset, Time: rec.Time, Last: last}
	l.headers = from.append(l.headers, bytes(id))
	l.ours = len(l.headers) - own
	return l
}

// strip removes the value, or, if there is none, the key and the original's headers. It adds the reason to the
// message if it removes the value. It reports false if nothing of the original is left.
func (l *deadLetter) strip(why string) bool {
	ours := l.headers[len(l.headers)-l.ours:]
	switch {
	case l.value != nil:
		l.value = nil
		ours[1].Value = fmt.Appendf(ours[1].Value, " (without its value: %s; the original is at its source offset)", why)
	case l.key != nil || len(l.headers) > l.ours:
		l.key, l.headers = nil, ours
	default:
		return false
	}
	return true
}

func (l *deadLetter) size() int {
	n := len(l.key) + len(l.value)
	for _, h := range l.headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
