package deadletters

// What a dead letter is: the record as it was, and the headers that say why it couldn't
// be counted and where it stands.

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest/recordbatch"
)

// deadLetter is a record of a dead-letter topic. Its bytes are the record's until keep.
type deadLetter struct {
	dlq       string // the dead-letter topic
	partition int    // of dlq, and of the original unless someone moved letters about
	offset    int64  // in dlq
	written   int64  // when the letter was written, Unix ms

	source  original
	time    int64 // the original's, Unix ms; none at or below 0
	reason  string
	message string
	eventID string // empty is none

	key     []byte
	headers []kafka.Header // the original's
	value   []byte         // nil where the letter came without it

	// fault is why this is no letter: then only dlq, partition, offset, written and the
	// record's own key, headers and value are there.
	fault string
}

// original is where a record stands that couldn't be counted.
type original struct {
	topic     string
	partition int
	offset    int64
}

func (o original) String() string { return positionText(o.topic, int64(o.partition), o.offset) }

// at is where the letter stands.
func (l *deadLetter) at() string { return positionText(l.dlq, int64(l.partition), l.offset) }

// letterHeaders are what every letter ends with, in this order, and then the event's id
// if it is known. An original may have had headers of these names: they come before.
var letterHeaders = [...]string{"reason", "message", "topic", "partition", "offset", "timestamp"}

const (
	letterPrefix   = "standings-"
	letterEventID  = letterPrefix + "event-id"
	tooLargeToRead = "the record has %d bytes, more than is read"
)

// year10000 is the first instant, in Unix ms, that RFC 3339 can't write.
const year10000 = 253402300800000

// reasonForm is what a reason looks like, those of later versions too: counts are kept by
// reason, so that not any text can be one.
var reasonForm = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)

// readLetter takes a record apart. It never fails: what is no letter says why.
func readLetter(dlq string, partition int, rec *recordbatch.Record) *deadLetter {
	l := &deadLetter{dlq: dlq, partition: partition, offset: rec.Offset, written: rec.Time, key: rec.Key, value: rec.Value}
	rec.EachHeader(func(key, value []byte) {
		l.headers = append(l.headers, kafka.Header{Key: string(key), Value: value})
	})
	if rec.Oversize > 0 {
		l.fault = fmt.Sprintf(tooLargeToRead, rec.Oversize)
		return l
	}
	l.fault = l.readHeaders()
	return l
}

// readHeaders takes the letter's own headers off the original's.
func (l *deadLetter) readHeaders() string {
	end := len(l.headers)
	id := ""
	if end > 0 && l.headers[end-1].Key == letterEventID {
		id = string(l.headers[end-1].Value)
		end--
	}
	begin := end - len(letterHeaders)
	if begin < 0 {
		return "it hasn't the headers of a dead letter"
	}
	var values [len(letterHeaders)]string
	for i, name := range letterHeaders {
		h := l.headers[begin+i]
		if h.Key != letterPrefix+name {
			return "it hasn't the headers of a dead letter"
		}
		values[i] = string(h.Value)
	}
	partition, badPartition := strconv.ParseInt(values[3], 10, 32)
	offset, badOffset := strconv.ParseInt(values[4], 10, 64)
	at, badTime := strconv.ParseInt(values[5], 10, 64)
	switch {
	case !reasonForm.MatchString(values[0]):
		return "its " + letterPrefix + "reason isn't one"
	case config.CheckTopic(values[2]) != nil:
		return "its " + letterPrefix + "topic isn't a topic's name"
	case badPartition != nil || partition < 0:
		return "its " + letterPrefix + "partition isn't one"
	case badOffset != nil || offset < 0:
		return "its " + letterPrefix + "offset isn't one"
	case badTime != nil:
		return "its " + letterPrefix + "timestamp isn't one"
	}
	l.reason, l.message, l.eventID = values[0], values[1], id
	l.source = original{values[2], int(partition), offset}
	l.time = at
	l.headers = l.headers[:begin:begin]
	return ""
}

// keep makes the letter's bytes its own.
func (l *deadLetter) keep() {
	l.key, l.value = bytes.Clone(l.key), bytes.Clone(l.value)
	for i := range l.headers {
		l.headers[i].Value = bytes.Clone(l.headers[i].Value)
	}
}

// appendLine appends the line that `consumer produce --file` takes. withTime gives the
// copy the original's time.
func (l *deadLetter) appendLine(line []byte, withTime bool) []byte {
	line = append(line, `{"dead_letter":{"topic":`...)
	line = appendText(line, l.source.topic)
	line = strconv.AppendInt(append(line, `,"partition":`...), int64(l.source.partition), 10)
	line = strconv.AppendInt(append(line, `,"offset":`...), l.source.offset, 10)
	line = appendText(append(line, `,"reason":`...), l.reason)
	line = appendText(append(line, `,"message":`...), l.message)
	if l.eventID != "" {
		line = appendText(append(line, `,"event_id":`...), l.eventID)
	}
	line = appendText(append(line, `,"letter":`...), l.at())
	line = appendText(append(line, `,"written":`...), units.TimeMS(l.written))
	line = append(line, '}')
	if withTime && l.time > 0 && l.time < year10000 {
		line = appendText(append(line, `,"time":`...), units.TimeMS(l.time))
	}
	return append(l.appendRecord(append(line, ',')), '}')
}

// asJSON is what is known of a record, a letter or not.
func (l *deadLetter) asJSON() []byte {
	if l.fault == "" {
		return l.appendLine(nil, true)
	}
	line := appendText([]byte(`{"record":`), l.at())
	line = appendText(append(line, `,"problem":`...), l.fault)
	line = appendText(append(line, `,"written":`...), units.TimeMS(l.written))
	return append(l.appendRecord(append(line, ',')), '}')
}

// appendRecord appends key, headers and value.
func (l *deadLetter) appendRecord(line []byte) []byte {
	line = appendBytes(line, "key", l.key)
	line = append(line, `,"headers":[`...)
	for i, h := range l.headers {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendBytes(append(line, '{'), "key", []byte(h.Key))
		line = appendBytes(append(line, ','), "value", h.Value)
		line = append(line, '}')
	}
	return appendValue(append(line, `],`...), l.value)
}

// parsePosition reads topic/partition@offset.
func parsePosition(text string) (original, error) {
	const form = "%q isn't a position such as points/3@480: topic/partition@offset"
	place, offset, ok := strings.Cut(text, "@")
	slash := strings.LastIndexByte(place, '/')
	if !ok || slash < 0 || config.CheckTopic(place[:slash]) != nil {
		return original{}, cli.Usagef(form, text)
	}
	p, err := strconv.ParseInt(place[slash+1:], 10, 32)
	if err != nil || p < 0 {
		return original{}, cli.Usagef(form, text)
	}
	o, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || o < 0 {
		return original{}, cli.Usagef(form, text)
	}
	return original{place[:slash], int(p), o}, nil
}
