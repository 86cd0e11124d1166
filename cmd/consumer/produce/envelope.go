package produce

// Events as CloudEvents, by the Kafka protocol binding of version 1.0.2: so that a
// topic of that kind can be had to try.

import (
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// The forms in which an event can be published.
const (
	formatPlain      = "plain"
	formatBinary     = "cloudevents"
	formatStructured = "cloudevents-structured"
)

var formats = []string{formatPlain, formatBinary, formatStructured}

// envelope makes CloudEvents of events, each with an id of its own.
type envelope struct {
	format  string
	source  string // ids are unique in it
	made    int64
	headers []kafka.Header // in binary mode the id and time are the last
	id      []byte
	time    []byte
	value   []byte
}

const eventType = "standings.points"

func newEnvelope(format, source string) *envelope {
	header := func(key, value string) kafka.Header { return kafka.Header{Key: key, Value: []byte(value)} }
	e := &envelope{format: format, source: source}
	switch format {
	case formatStructured:
		e.headers = []kafka.Header{header("content-type", "application/cloudevents+json; charset=utf-8")}
	case formatBinary:
		e.headers = []kafka.Header{
			header("content-type", "application/json"), header("ce_specversion", "1.0"), header("ce_type", eventType),
			header("ce_source", source), header("ce_id", ""), header("ce_time", ""),
		}
	}
	return e
}

// wrap makes a record of an event as of now. It holds until the next call.
func (e *envelope) wrap(o outgoing, now time.Time) outgoing {
	if e.format == formatPlain {
		return o
	}
	e.made++
	e.id = strconv.AppendInt(e.id[:0], e.made, 10)
	e.time = now.UTC().AppendFormat(e.time[:0], "2006-01-02T15:04:05.000Z")
	o.headers = e.headers
	if e.format == formatBinary {
		o.headers[4].Value, o.headers[5].Value = e.id, e.time
		return o
	}
	e.value = fmt.Appendf(e.value[:0], `{"specversion":"1.0","type":"`+eventType+`","source":"%s","id":"%s","time":"%s","datacontenttype":"application/json","data":%s}`,
		e.source, e.id, e.time, o.value)
	o.value = e.value
	return o
}
