package deadletters

// A dead letter as a line of JSON, which is mended by hand or by jq and published again
// by `consumer produce --file`: what the record was, and where it stood.
//
//	{"dead_letter":{"topic":"points","partition":3,"offset":480,"reason":"invalid",…},
//	 "time":"2026-11-21T08:15:30.123Z","key":"u42",
//	 "headers":[{"key":"ce_id","value":"1"}],"value":{"user_id":"u42","points":"25"}}
//
// value is an object of JSON as it stood; what isn't one is value_text, and what isn't
// UTF-8 is value_base64. Keys, and keys and values of headers, are text or base64 alike.

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/segmentio/kafka-go"
)

// MendsHeader is what the mended copy of a dead letter has beside the original's
// headers: where the original stands, as topic/partition@offset. Nothing is decided by
// it; it is how copies are found again.
const MendsHeader = "standings-mends"

// Line is what a line says.
type Line struct {
	Topic     string // where the original stands
	Partition int64
	Offset    int64
	At        time.Time // the record's; zero for the time at which it is published
	Key       []byte    // nil is none
	Headers   []kafka.Header
	Value     []byte // nil where the letter came without it
	IsText    bool   // of the value: it was given as text or base64
}

// Origin is where the original stands: topic/partition@offset.
func (l *Line) Origin() string { return positionText(l.Topic, l.Partition, l.Offset) }

func positionText(topic string, partition, offset int64) string {
	return topic + "/" + strconv.FormatInt(partition, 10) + "@" + strconv.FormatInt(offset, 10)
}

// Name is the name that tells a dead letter from an event.
const Name = "dead_letter"

// LooksLikeLetter is quick: it may say so of an event, and never misses a line that was
// exported.
func LooksLikeLetter(line []byte) bool { return bytes.Contains(line, []byte(`"`+Name+`"`)) }

// ErrNoLetter says that a line has no dead_letter of its own: it is an event.
var ErrNoLetter = errors.New("no " + Name)

// ParseLine reads a line. It returns errNoLetter for what isn't an object of JSON
// with a dead_letter, and another error for one that can't be published.
func ParseLine(line []byte) (*Line, error) {
	names, err := ObjectOf(line)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLetter, err)
	}
	from, ok := names[Name]
	if !ok {
		return nil, ErrNoLetter
	}
	l := &Line{}
	if err := l.parseFrom(from); err != nil {
		return nil, err
	}
	for name := range names {
		switch name {
		case Name, "time", "headers", "key", "key_base64", "value", "value_text", "value_base64":
		default:
			return nil, fmt.Errorf("a dead letter has no %q; what an event has goes into its value", name)
		}
	}
	if err := l.parseTime(names["time"]); err != nil {
		return nil, err
	}
	if l.Key, err = bytesOf(names, "key", "key", "key_base64"); err != nil {
		return nil, err
	}
	if err := l.parseHeaders(names["headers"]); err != nil {
		return nil, err
	}
	return l, l.parseValue(names)
}

func (l *Line) parseFrom(text jsontext.Value) error {
	from, err := ObjectOf(text)
	if err != nil {
		return fmt.Errorf("%s isn't an object", Name)
	}
	topic := from["topic"]
	if topic.Kind() != '"' {
		return fmt.Errorf("%s has no topic", Name)
	}
	l.Topic = unquoted(topic)
	for name, p := range map[string]*int64{"partition": &l.Partition, "offset": &l.Offset} {
		if *p, err = strconv.ParseInt(string(from[name]), 10, 64); err != nil || *p < 0 {
			return fmt.Errorf("%s has no %s", Name, name)
		}
	}
	return nil
}

func (l *Line) parseTime(text jsontext.Value) error {
	if absent(text) {
		return nil
	}
	at, err := time.Parse(time.RFC3339, unquoted(text))
	if err != nil || at.UnixMilli() <= 0 {
		return fmt.Errorf("time %s isn't one such as \"2026-11-21T08:15:30.123Z\"; without it the record has the time at which it is published", text)
	}
	l.At = at
	return nil
}

func (l *Line) parseHeaders(text jsontext.Value) error {
	if absent(text) {
		return nil
	}
	list, err := listOf(text)
	if err != nil {
		return errors.New("headers isn't a list")
	}
	for i, item := range list {
		names, err := ObjectOf(item)
		if err != nil {
			return fmt.Errorf("header %d isn't an object", i+1)
		}
		key, err := bytesOf(names, "key", "key", "key_base64")
		if err == nil && key == nil {
			err = errors.New("it has no key")
		}
		var value []byte
		if err == nil {
			value, err = bytesOf(names, "value", "value", "value_base64")
		}
		if err != nil {
			return fmt.Errorf("header %d: %w", i+1, err)
		}
		l.Headers = append(l.Headers, kafka.Header{Key: string(key), Value: value})
	}
	return nil
}

func (l *Line) parseValue(names map[string]jsontext.Value) error {
	value := names["value"]
	if !absent(value) {
		if value.Kind() != '{' {
			return errors.New("value isn't an object of JSON; other text is value_text")
		}
		for _, other := range []string{"value_text", "value_base64"} {
			if !absent(names[other]) {
				return fmt.Errorf("it has both value and %s: leave one of them", other)
			}
		}
		l.Value = value
		return nil
	}
	var err error
	l.IsText = true
	l.Value, err = bytesOf(names, "value", "value_text", "value_base64")
	if err == nil && l.Value == nil {
		err = fmt.Errorf("it has no value; the original stands at %s", l.Origin())
	}
	return err
}

// bytesOf is what stands as text or as base64, nil where neither does.
func bytesOf(names map[string]jsontext.Value, what, asText, asBase64 string) ([]byte, error) {
	text, coded := names[asText], names[asBase64]
	switch {
	case !absent(text) && !absent(coded):
		return nil, fmt.Errorf("it has both %s and %s: leave one of them", asText, asBase64)
	case !absent(text):
		if text.Kind() != '"' {
			return nil, fmt.Errorf("its %s isn't a text", asText)
		}
		return append([]byte{}, unquoted(text)...), nil
	case !absent(coded):
		b, err := base64.StdEncoding.DecodeString(unquoted(coded))
		if err != nil || coded.Kind() != '"' {
			return nil, fmt.Errorf("its %s isn't base64 of a %s", asBase64, what)
		}
		return append([]byte{}, b...), nil
	}
	return nil, nil
}

func absent(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

func unquoted(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v) // it was checked when it was read
	return string(text)
}

// ObjectOf reads all of an object of JSON; of a repeated name the last counts.
func ObjectOf(text []byte) (map[string]jsontext.Value, error) {
	names := map[string]jsontext.Value{}
	return names, eachOf(text, '{', func(d *jsontext.Decoder) error {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := d.ReadValue()
		names[key] = value.Clone()
		return err
	})
}

func listOf(text []byte) (list []jsontext.Value, err error) {
	return list, eachOf(text, '[', func(d *jsontext.Decoder) error {
		value, err := d.ReadValue()
		list = append(list, value.Clone())
		return err
	})
}

func eachOf(text []byte, kind jsontext.Kind, item func(*jsontext.Decoder) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != kind {
		return errors.New("it is another JSON value, or none")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for end := kind + 2; d.PeekKind() != end; { // ] and } in ASCII
		if err := item(d); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// appendBytes appends a member of an object: name as text, else name_base64, or null.
func appendBytes(line []byte, name string, b []byte) []byte {
	switch {
	case b == nil:
		return append(append(append(line, '"'), name...), `":null`...)
	case utf8.Valid(b):
		line = append(append(append(line, '"'), name...), `":`...)
		return appendText(line, string(b))
	}
	line = append(append(append(line, '"'), name...), `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(line, b), '"')
}

func appendText(line []byte, text string) []byte {
	line, _ = jsontext.AppendQuote(line, text) // what isn't UTF-8 is replaced
	return line
}

// appendValue appends the value: as it stands where it is an object, on one line.
func appendValue(line, value []byte) []byte {
	switch {
	case value == nil:
		return append(line, `"value":null`...)
	case brackets(value) <= maxBrackets && IsObject(value):
		line = append(line, `"value":`...)
		at := len(line)
		line = append(line, bytes.TrimSpace(value)...)
		for i, c := range line[at:] {
			if c == '\n' || c == '\r' { // never inside of a string
				line[at+i] = ' '
			}
		}
		return line
	case utf8.Valid(value):
		return appendText(append(line, `"value_text":`...), string(value))
	}
	return appendBytes(line, "value", value)
}

// maxBrackets keeps an object that is nested nearly as deep as is read from being too
// deep inside of a line: it is text there.
const maxBrackets = 5000

func brackets(value []byte) int {
	return bytes.Count(value, []byte("{")) + bytes.Count(value, []byte("["))
}

// IsObject reports whether value is one object of JSON, and nothing else.
func IsObject(value []byte) bool {
	return eachOf(value, '{', func(d *jsontext.Decoder) error {
		if err := d.SkipValue(); err != nil {
			return err
		}
		return d.SkipValue()
	}) == nil
}
