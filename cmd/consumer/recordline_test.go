package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/recordbatch"
)

func TestALineThatCanNotBePublishedSaysWhy(t *testing.T) {
	const from = `{"dead_letter":{"topic":"points","partition":3,"offset":480}`
	for line, want := range map[string]string{
		from + `}`:                                               "line 1 is a dead letter that can't be published: it has no value; the original stands at points/3@480",
		from + `,"value":null}`:                                  "it has no value",
		from + `,"value":5}`:                                     "value isn't an object of JSON; other text is value_text",
		from + `,"value":{},"value_text":""}`:                    "it has both value and value_text: leave one of them",
		from + `,"value_base64":"?"}`:                            "its value_base64 isn't base64 of a value",
		from + `,"value_text":"{"}`:                              "line 1: the value of points/3@480 isn't mended, it is no JSON object (--raw publishes it all the same)",
		from + `,"value":{},"user_id":"u1"}`:                     `a dead letter has no "user_id"; what an event has goes into its value`,
		from + `,"value":{},"time":"today"}`:                     `time "today" isn't one such as`,
		from + `,"value":{},"time":5}`:                           "time 5 isn't one such as",
		from + `,"value":{},"key":5}`:                            "its key isn't a text",
		from + `,"value":{},"headers":{}}`:                       "headers isn't a list",
		from + `,"value":{},"headers":[{}]}`:                     "header 1: it has no key",
		from + `,"value":{}`:                                     "line 1 was a dead letter and isn't JSON any more",
		`{"dead_letter":5}`:                                      "dead_letter isn't an object",
		`{"dead_letter":{}}`:                                     "dead_letter has no topic",
		`{"dead_letter":{"topic":"p"}}`:                          "dead_letter has no ",
		strings.Replace(from, "points", "p", 1) + `,"value":{}}`: "line 1 is a dead letter of p, and this publishes to points: export and publish a topic at a time",
	} {
		_, err := newLines(strings.NewReader(line), "points", false).next()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", line, err, want)
		}
	}
	// An event may have any field, in objects too.
	for _, line := range []string{`{"user_id":"u1","more":{"dead_letter":{"topic":"points"}}}`, `{"user_id":"dead_letter"}`, `{"user_id":"u1","a":"\"dead_letter\""}`} {
		if o, err := newLines(strings.NewReader(line), "points", false).next(); err != nil || o.letter || string(o.value) != line {
			t.Errorf("%s: %+v, %v", line, o, err)
		}
	}
	// Mended to an object, text is one.
	if o, err := newLines(strings.NewReader(from+`,"value_text":"{\"points\":1}"}`), "points", false).next(); err != nil || string(o.value) != `{"points":1}` {
		t.Errorf("%s, %v", o.value, err)
	}
	if o, err := newLines(strings.NewReader(from+`,"value_text":"{"}`), "points", true).next(); err != nil || string(o.value) != `{` {
		t.Errorf("raw: %s, %v", o.value, err)
	}
}

// Whatever a line is, it is an event, or refused, or a record that is exported as the
// same line again.
func FuzzALetterLineIsTheRecordThatItIsExportedAs(f *testing.F) {
	const from = `{"dead_letter":{"topic":"points","partition":3,"offset":480},`
	for _, line := range []string{`{}`, `{"user_id":"a"}`, from + `"value":{"a":1}}`, from + `"key":"k","headers":[{"key":"a","value_base64":"/w=="}],"value_text":""}`,
		from + `"time":"2026-11-21T08:15:30.123Z","key_base64":"/w==","headers":null,"value_base64":"AA=="}`, from + `"value":`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseLetterLine(line)
		if err != nil {
			if errors.Is(err, errNoLetter) && bytes.HasPrefix(line, []byte(from)) && isObject(line) {
				t.Fatalf("%q isn't taken for a letter: %v", line, err)
			}
			return
		}
		var names map[string]json.RawMessage
		if err := json.Unmarshal(line, &names); err != nil || names[letterName] == nil {
			t.Fatalf("%q isn't an object with a dead letter to encoding/json: %v", line, err)
		}
		l := &deadLetter{source: original{m.topic, int(m.partition), m.offset}, key: m.key, value: m.value, headers: m.headers}
		if !m.at.IsZero() {
			l.time = m.at.UnixMilli()
		}
		exported := l.appendLine(nil, true)
		again, err := parseLetterLine(exported)
		if err != nil || bytes.ContainsAny(exported, "\r\n") {
			t.Fatalf("%q is exported as %q: %v", line, exported, err)
		}
		if again.origin() != m.origin() || !same(again.key, m.key) || len(again.headers) != len(m.headers) || again.at.UnixMilli() != m.at.UnixMilli() ||
			!bytes.Equal(bytes.TrimSpace(bytes.Map(withoutBreaks, again.value)), bytes.TrimSpace(bytes.Map(withoutBreaks, m.value))) {
			t.Fatalf("%q is exported as %q: %+v, %+v", line, exported, m, again)
		}
		for i, h := range m.headers {
			if again.headers[i].Key != h.Key || !same(again.headers[i].Value, h.Value) {
				t.Fatalf("header %d of %q is exported as %q", i, line, exported)
			}
		}
	})
}

// Headers are anybody's: with any of them a record is a letter or it isn't.
func FuzzARecordIsALetterOrSaysWhyNot(f *testing.F) {
	f.Add("invalid", "why", "points", "3", "480", "1795248930123", []byte("k"), []byte(`{"a":1}`))
	f.Add("invalid", "", "points", "0", "0", "253402300800000", []byte{}, []byte{})
	f.Add("Any text", "", "", "-1", "", "x", []byte(nil), []byte("\xff"))
	f.Fuzz(func(t *testing.T, reason, message, topic, partition, offset, ms string, key, value []byte) {
		rec := &recordbatch.Record{Offset: 1, Time: 1795248930123, Key: key, Value: value}
		var headers []kafka.Header
		for i, v := range []string{reason, message, topic, partition, offset, ms} {
			headers = append(headers, header(letterPrefix+letterHeaders[i], v))
		}
		rec.Headers, rec.HeaderCount = headersOf(headers)
		l := readLetter("points.dlq", 3, rec)
		line := l.asJSON()
		if _, err := objectOf(line); err != nil || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("%q isn't a line of JSON: %v", line, err)
		}
		if l.fault != "" {
			return
		}
		m, err := parseLetterLine(line)
		if value == nil {
			if err == nil {
				t.Fatalf("%q has no value", line)
			}
			return
		}
		if err != nil || m.origin() != l.source.String() || l.source.topic != topic {
			t.Fatalf("%q: %+v, %v", line, m, err)
		}
		var shown bytes.Buffer
		if err := writeLetter(&shown, l, []int64{1}, "UTC"); err != nil || bytes.ContainsAny(shown.Bytes(), "\x1b\x00\u202e") {
			t.Fatalf("%q, %v", shown.Bytes(), err)
		}
	})
}
