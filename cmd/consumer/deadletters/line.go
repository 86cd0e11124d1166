package deadletters

// This file converts a dead letter to and from a line of JSON: the original record and its position. An
// operator fixes the line by hand or with jq, and publishes it with `consumer produce --file`.
//
//	{"dead_letter":{"topic":"points","partition":3,"offset":480,"reason":"invalid",…},
//	 "time":"2026-11-21T08:15:30.123Z","key":"u42",
//	 "headers":[{"key":"ce_id","value":"1"}],"value":{"user_id":"u42","points":"25"}}
//
// If the value is a JSON object, value holds it unchanged, except that invisible characters are escaped.
// Otherwise value_text holds it, or value_base64 if it is not UTF-8. Keys, and the keys and values of
// headers, are text or base64 in the same way.

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/units"
)

// FixesHeader is a header that the fixed copy of a dead letter has in addition to the original's headers.
// Its value is the original's position, as topic/partition@offset. It only serves to find copies; no count
// depends on it.
const FixesHeader = "standings-mends"

// Line is the content of a line.
type Line struct {
	Position           // of the original
	At       time.Time // the record's time; zero means the time of publication
	Key      []byte    // nil: no key
	Headers  []kafka.Header
	Value    []byte
	IsText   bool // the value was given as text or base64, not as JSON
}

// lineJSON is the JSON of a line. If a name is repeated, its last value counts.
type lineJSON struct {
	Original struct {
		Topic     string `json:"topic"`
		Partition *int32 `json:"partition"`
		Offset    *int64 `json:"offset"`
		Last      *int64 `json:"last_offset"` // set if the dead letter stands for a record batch that could not be read
	} `json:"dead_letter"`
	Time        jsontext.Value            `json:"time"`
	Key         *string                   `json:"key"`
	KeyBase64   []byte                    `json:"key_base64"`
	Headers     []headerJSON              `json:"headers"`
	Value       jsontext.Value            `json:"value"`
	ValueText   *string                   `json:"value_text"`
	ValueBase64 []byte                    `json:"value_base64"`
	Others      map[string]jsontext.Value `json:",embed"`
}

type headerJSON struct {
	Key         *string `json:"key"`
	KeyBase64   []byte  `json:"key_base64"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64"`
}

var lastCounts = jsontext.AllowDuplicateNames(true)

// ErrEvent means that a line has no top-level dead_letter field, so it is an event.
var ErrEvent = errors.New("an event")

// ParseLine parses a line. It returns ErrEvent if the line is not a dead letter, and another error if it is
// one that cannot be published. A broken line that starts like a dead letter is an error, so that it is not
// published as an event.
func ParseLine(line []byte) (*Line, error) {
	if !bytes.Contains(line, []byte(`"dead_letter"`)) {
		return nil, ErrEvent
	}
	var names struct {
		Original jsontext.Value `json:"dead_letter"`
	}
	if err := json.Unmarshal(line, &names, lastCounts); err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte(`{"dead_letter"`)) {
			return nil, fmt.Errorf("was a dead letter but is not valid JSON: %w", err)
		}
		return nil, ErrEvent
	}
	if names.Original == nil {
		return nil, ErrEvent
	}
	l, err := parseLine(line)
	if err != nil {
		return nil, fmt.Errorf("is a dead letter that cannot be published: %w", err)
	}
	return l, nil
}

func parseLine(line []byte) (*Line, error) {
	var j lineJSON
	err := json.Unmarshal(line, &j, lastCounts)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		err = fmt.Errorf("%s: %w", strings.TrimPrefix(string(wrong.JSONPointer), "/"), cmp.Or(wrong.Err, errType))
	}
	if err != nil {
		return nil, err
	}
	from := j.Original
	switch {
	case from.Topic == "":
		return nil, errors.New("dead_letter has no topic")
	case from.Partition == nil || *from.Partition < 0:
		return nil, errors.New("dead_letter has no partition")
	case from.Offset == nil || *from.Offset < 0:
		return nil, errors.New("dead_letter has no offset")
	case from.Last != nil:
		return nil, fmt.Errorf("it stands for the records at offsets %d to %d of %s/%d, which the consumer could not read: raise fold_memory, and rebuild", *from.Offset, *from.Last, from.Topic, *from.Partition)
	}
	for name := range j.Others {
		return nil, fmt.Errorf("a dead letter has no field %q; an event's fields belong in its value", name)
	}
	l := &Line{Position: Position{from.Topic, int(*from.Partition), *from.Offset}}
	if given(j.Time) {
		if err := json.Unmarshal(j.Time, &l.At); err != nil || l.At.UnixMilli() <= 0 {
			return nil, fmt.Errorf("time %s must be a time such as \"2026-11-21T08:15:30.123Z\"; without it the record has the time at which it is published", j.Time)
		}
	}
	if l.Key, err = either("key", j.Key, j.KeyBase64); err != nil {
		return nil, err
	}
	for i, h := range j.Headers {
		key, wrong := either("key", h.Key, h.KeyBase64)
		value, wrongValue := either("value", h.Value, h.ValueBase64)
		if err := errors.Join(wrong, wrongValue); err != nil {
			return nil, fmt.Errorf("header %d: %w", i+1, err)
		}
		if key == nil {
			return nil, fmt.Errorf("header %d: it has no key", i+1)
		}
		l.Headers = append(l.Headers, kafka.Header{Key: string(key), Value: value})
	}
	if l.Value, err = either("value", j.ValueText, j.ValueBase64); err != nil {
		return nil, err
	}
	l.IsText = !given(j.Value)
	switch {
	case l.IsText && l.Value == nil:
		return nil, fmt.Errorf("it has no value; the original is at %s", l.Position)
	case l.IsText:
	case l.Value != nil:
		return nil, errors.New("it has both value and value_text or value_base64: leave one of them")
	case j.Value.Kind() != '{':
		return nil, errors.New("value must be a JSON object; use value_text for other text")
	default:
		l.Value = j.Value
	}
	return l, nil
}

var errType = errors.New("wrong JSON type")

func given(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }

// either returns the value given as text or as base64, or nil if neither is given.
func either(name string, text *string, coded []byte) ([]byte, error) {
	switch {
	case text == nil:
		return coded, nil
	case coded != nil:
		return nil, fmt.Errorf("it has both a text and base64 for its %s: leave one of them", name)
	}
	return []byte(*text), nil
}

// year10000 is the first instant that RFC 3339 cannot represent, in Unix ms.
const year10000 = 253402300800000

// appendLine appends the line that `consumer produce --file` reads. With withTime it includes the
// original's time.
func (l *deadLetter) appendLine(line []byte, withTime bool) []byte {
	line = appendText(line, `{"dead_letter":{"topic":`, l.source.Topic)
	line = strconv.AppendInt(append(line, `,"partition":`...), int64(l.source.Partition), 10)
	line = strconv.AppendInt(append(line, `,"offset":`...), l.source.Offset, 10)
	if l.Last > l.Offset {
		line = strconv.AppendInt(append(line, `,"last_offset":`...), l.Last, 10)
	}
	line = appendText(line, `,"reason":`, l.Reason)
	line = appendText(line, `,"message":`, l.Message)
	if l.EventID != "" {
		line = appendText(line, `,"event_id":`, l.EventID)
	}
	line = appendText(line, `,"letter":`, l.at.String())
	line = append(appendText(line, `,"written":`, units.TimeMS(l.written)), '}')
	if withTime && l.Time > 0 && l.Time < year10000 {
		line = appendText(line, `,"time":`, units.TimeMS(l.Time))
	}
	return l.appendRecord(line)
}

// asJSON returns the JSON of a record, whether it is a dead letter or not.
func (l *deadLetter) asJSON() []byte {
	if l.fault == "" {
		return l.appendLine(nil, true)
	}
	line := appendText(nil, `{"record":`, l.at.String())
	line = appendText(line, `,"problem":`, l.fault)
	return l.appendRecord(appendText(line, `,"written":`, units.TimeMS(l.written)))
}

// appendRecord appends key, headers and value, and closes the object.
func (l *deadLetter) appendRecord(line []byte) []byte {
	line = append(appendBytes(append(line, ','), "key", "key", l.key), `,"headers":[`...)
	for i, h := range l.headers {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendBytes(append(line, '{'), "key", "key", []byte(h.Key))
		line = append(appendBytes(append(line, ','), "value", "value", h.Value), '}')
	}
	line = append(line, `],`...)
	if brackets(l.value) > maxBrackets || !IsObject(l.value) {
		return append(appendBytes(line, "value", "value_text", l.value), '}')
	}
	line = append(line, `"value":`...)
	at := len(line)
	line = append(line, bytes.TrimSpace(l.value)...)
	for i, c := range line[at:] {
		if c == '\n' || c == '\r' { // valid JSON has none inside a string
			line[at+i] = ' '
		}
	}
	return append(line, '}')
}

// appendBytes appends a field: as text under the name asText if b is UTF-8, else as name_base64, or null if
// b is nil.
func appendBytes(line []byte, name, asText string, b []byte) []byte {
	switch {
	case b == nil:
		return fmt.Appendf(line, `"%s":null`, name)
	case utf8.Valid(b):
		return appendText(line, `"`+asText+`":`, string(b))
	}
	line = fmt.Appendf(line, `"%s_base64":"`, name)
	return append(base64.StdEncoding.AppendEncode(line, b), '"')
}

// appendText appends before, and then text as a JSON string.
func appendText(line []byte, before, text string) []byte {
	line, _ = jsontext.AppendQuote(append(line, before...), text) // bytes that are not UTF-8 are replaced
	return line
}

// maxBrackets limits the brackets in an object that a line holds as JSON. Inside the line an object is
// nested more deeply, and could exceed the parser's limit; larger ones are written as text.
const maxBrackets = 5000

func brackets(value []byte) int {
	return bytes.Count(value, []byte("{")) + bytes.Count(value, []byte("["))
}

// IsObject reports whether value is exactly one JSON object.
func IsObject(value []byte) bool {
	return jsontext.Value(value).Kind() == '{' && jsontext.Value(value).IsValid(lastCounts)
}
