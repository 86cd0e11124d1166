package main

// Events as CloudEvents, by the Kafka protocol binding of version 1.0.2: so that a
// topic of that kind can be had to try.

import (
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

// outgoing is a record to be published. The id and time of a CloudEvent in binary
// mode are those of its headers; else they are nil.
type outgoing struct {
	key, value, id, time []byte

	letter  bool           // a dead letter's mended copy, published as it is
	headers []kafka.Header // of this record alone
	at      time.Time      // the record's time; zero is when it is sent
}

// envelope makes CloudEvents of events, each with an id of its own.
type envelope struct {
	format string
	source string // ids are unique in it
	made   int64
	id     []byte
	time   []byte
	value  []byte
}

const eventType = "standings.points"

// headers are what every record of a format has, and in binary mode the id and time
// last, to be filled in.
func headers(format, source string) []kafka.Header {
	header := func(key, value string) kafka.Header { return kafka.Header{Key: key, Value: []byte(value)} }
	switch format {
	case formatStructured:
		return []kafka.Header{header("content-type", "application/cloudevents+json; charset=utf-8")}
	case formatBinary:
		return []kafka.Header{
			header("content-type", "application/json"), header("ce_specversion", "1.0"), header("ce_type", eventType),
			header("ce_source", source), header("ce_id", ""), header("ce_time", ""),
		}
	}
	return nil
}

// wrap makes a record of an event as of now. It holds until the next call.
func (e *envelope) wrap(o outgoing, now time.Time) outgoing {
	if e.format == formatPlain {
		return o
	}
	e.made++
	e.id = strconv.AppendInt(e.id[:0], e.made, 10)
	e.time = now.UTC().AppendFormat(e.time[:0], "2006-01-02T15:04:05.000Z")
	if e.format == formatBinary {
		return outgoing{key: o.key, value: o.value, id: e.id, time: e.time}
	}
	e.value = append(e.value[:0], `{"specversion":"1.0","type":"`+eventType+`","source":"`...)
	e.value = append(e.value, e.source...)
	e.value = append(e.value, `","id":"`...)
	e.value = append(e.value, e.id...)
	e.value = append(e.value, `","time":"`...)
	e.value = append(e.value, e.time...)
	e.value = append(e.value, `","datacontenttype":"application/json","data":`...)
	e.value = append(e.value, o.value...)
	e.value = append(e.value, '}')
	return outgoing{key: o.key, value: e.value}
}
