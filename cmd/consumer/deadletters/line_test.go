package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// Producers choose the headers: with any headers, a record either is a dead letter or is not one.
func FuzzARecordIsADeadLetterOrSaysWhyNot(f *testing.F) {
	f.Add("invalid", "why", "points", "3", "480", "1795248930123", []byte("k"), []byte(`{"a":1}`))
	f.Add("invalid", "", "points", "0", "0", "253402300800000", []byte{}, []byte{})
	f.Add("Any text", "", "", "-1", "", "x", []byte(nil), []byte("\xff"))
	f.Fuzz(func(t *testing.T, reason, message, topic, partition, offset, ms string, key, value []byte) {
		rec := &recordbatch.Record{Offset: 1, Time: 1795248930123, Key: key, Value: value}
		var headers []kafka.Header
		for i, name := range []string{"reason", "message", "topic", "partition", "offset", "timestamp"} {
			headers = append(headers, header("standings-"+name, []string{reason, message, topic, partition, offset, ms}[i]))
		}
		rec.Headers, rec.HeaderCount = headersOf(headers)
		l := readRecord("points.dlq", 3, rec)
		line := l.asJSON()
		if !IsObject(line) || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("%q isn't a line of JSON", line)
		}
		if l.fault != "" {
			return
		}
		m, err := ParseLine(line)
		if value == nil {
			if err == nil {
				t.Fatalf("%q has no value", line)
			}
			return
		}
		if err != nil || m.Position != l.source || l.source.Topic != topic {
			t.Fatalf("%q: %+v, %v", line, m, err)
		}
		var shown bytes.Buffer
		if err := l.write(&shown, 1, time.UTC); err != nil || bytes.ContainsAny(shown.Bytes(), "\x1b\x00\u202e") {
			t.Fatalf("%q, %v", shown.Bytes(), err)
		}
	})
}

// Any line is an event, or is rejected, or is a record that is exported as the same line again.
func FuzzALineIsTheRecordThatItIsExportedAs(f *testing.F) {
	const from = `{"dead_letter":{"topic":"points","partition":3,"offset":480},`
	for _, line := range []string{`{}`, `{"user_id":"a"}`, from + `"value":{"a":1}}`, from + `"key":"k","headers":[{"key":"a","value_base64":"/w=="}],"value_text":""}`,
		from + `"time":"2026-11-21T08:15:30.123Z","key_base64":"/w==","headers":null,"value_base64":"AA=="}`, from + `"value":`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := ParseLine(line)
		if err != nil {
			if errors.Is(err, ErrEvent) && bytes.HasPrefix(line, []byte(from)) && IsObject(line) {
				t.Fatalf("%q isn't taken for a letter: %v", line, err)
			}
			return
		}
		var names map[string]json.RawMessage
		if err := json.Unmarshal(line, &names); err != nil || names["dead_letter"] == nil {
			t.Fatalf("%q isn't an object with a dead letter to encoding/json: %v", line, err)
		}
		l := &deadLetter{source: m.Position, key: m.Key, value: m.Value, headers: m.Headers}
		if !m.At.IsZero() {
			l.Time = m.At.UnixMilli()
		}
		exported := l.appendLine(nil, true)
		again, err := ParseLine(exported)
		if err != nil || bytes.ContainsAny(exported, "\r\n") {
			t.Fatalf("%q is exported as %q: %v", line, exported, err)
		}
		if again.Position != m.Position || !same(again.Key, m.Key) || len(again.Headers) != len(m.Headers) || again.At.UnixMilli() != m.At.UnixMilli() ||
			!bytes.Equal(bytes.TrimSpace(bytes.Map(withoutBreaks, again.Value)), bytes.TrimSpace(bytes.Map(withoutBreaks, m.Value))) {
			t.Fatalf("%q is exported as %q: %+v, %+v", line, exported, m, again)
		}
		for i, h := range m.Headers {
			if again.Headers[i].Key != h.Key || !same(again.Headers[i].Value, h.Value) {
				t.Fatalf("header %d of %q is exported as %q", i, line, exported)
			}
		}
	})
}
