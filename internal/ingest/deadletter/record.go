package deadletter

import (
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// deadLetter is a record as it is to be written. kafka-go's own uses up its bytes
// when it is sent, so one is made for every try.
type deadLetter struct {
	offset     int64 // of the original
	time       time.Time
	key, value []byte
	headers    []kafka.Header // the original's, then ours
	ours       int            // how many those are
}

func (o *Outbox) deadLetter(rec *recordbatch.Record, id []byte, reason event.Reason, message string, keep bool) deadLetter {
	bytes := func(b []byte) []byte {
		if keep && b != nil {
			return append([]byte{}, b...)
		}
		return b
	}
	// By the original's time it might be too old to be kept, or too far in the
	// future to be taken.
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

// strip takes the value away, or else the key and the original's headers, and says why
// of the value. It reports false where nothing of the original is left.
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
