package produce

// This file holds the sources of records: the sample generator, and the lines of a file.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/deadletters"
	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/internal/units"
)

// outgoing is a record to publish.
type outgoing struct {
	key, value []byte
	headers    []kafka.Header
	at         time.Time // the record's time; zero means the time of sending
}

// source returns records one by one, and io.EOF at its end. Key and value are valid until the next call.
type source interface {
	next() (outgoing, error)
}

// samples is the source of sample events.
type samples struct {
	generator *sample.Generator
	buf       []byte
}

func (s *samples) next() (outgoing, error) {
	s.generator.SetNow(time.Now())
	var e sample.Event
	e, s.buf = s.generator.Next(s.buf[:0])
	return outgoing{key: e.Key, value: e.Value}, nil
}

// lineBytes is the maximum length of a line. Kafka's own limits are lower.
const lineBytes = 64 * units.MiB

// lines is the source for NDJSON. A line is either an event, which becomes the record's value unchanged
// with its user_id as key, or a dead letter, which contains the whole record. Blank lines are skipped.
type lines struct {
	topic  string // the topic to publish to; dead letters of other topics are rejected
	reader *bufio.Reader
	line   []byte
	number int
	raw    bool // also return values that are not JSON objects, without a key
}

func newLines(r io.Reader, topic string) *lines {
	return &lines{topic: topic, reader: bufio.NewReaderSize(r, 64*units.KiB)}
}

// read reads the next line without its line break. If a read fails or is interrupted, the incomplete line
// before it is not returned.
func (l *lines) read() error {
	l.line = l.line[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case len(l.line) > lineBytes:
			return fmt.Errorf("line %d is longer than %s", l.number+1, units.FormatBytes(lineBytes))
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.line) == 0:
			return io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("read after line %d: %w", l.number, err)
		}
		l.number++
		l.line = bytes.TrimSuffix(bytes.TrimSuffix(l.line, []byte("\n")), []byte("\r"))
		return nil
	}
}

func (l *lines) next() (outgoing, error) {
	for {
		if err := l.read(); err != nil {
			return outgoing{}, err
		}
		if len(bytes.TrimSpace(l.line)) == 0 {
			continue
		}
		if o, err := l.deadLetter(l.line); !errors.Is(err, deadletters.ErrEvent) {
			return o, err
		}
		key, err := userOf(l.line)
		if err != nil && !l.raw {
			return outgoing{}, lineErrorf("line %d is not a JSON object: %v", l.number, err)
		}
		return outgoing{key: key, value: l.line}, nil
	}
}

// lineError is the error for a line that is not published. The following lines can still be read.
type lineError struct{ text string }

func (e *lineError) Error() string { return e.text }

func lineErrorf(format string, args ...any) error {
	return &lineError{fmt.Sprintf(format, args...)}
}

// deadLetter returns the fixed copy of a dead letter, or deadletters.ErrEvent if the line is an event.
func (l *lines) deadLetter(line []byte) (outgoing, error) {
	m, err := deadletters.ParseLine(line)
	switch {
	case errors.Is(err, deadletters.ErrEvent):
		return outgoing{}, err
	case err != nil:
		return outgoing{}, lineErrorf("line %d %v", l.number, err)
	case m.Topic != l.topic:
		return outgoing{}, lineErrorf("line %d is a dead letter of %s, and this publishes to %s: export and publish a topic at a time", l.number, m.Topic, l.topic)
	case m.IsText && !l.raw && !deadletters.IsObject(m.Value):
		return outgoing{}, lineErrorf("line %d: the value of %s is still not a JSON object", l.number, m.Position)
	}
	headers := append(m.Headers, kafka.Header{Key: deadletters.FixesHeader, Value: []byte(m.String())})
	return outgoing{key: m.Key, value: m.Value, headers: headers, at: m.At}, nil
}

// userOf returns the user_id of an object as the consumer reads it: a string, or an integer as written; nil
// if there is none. The error explains why value is not exactly one JSON object.
func userOf(value []byte) ([]byte, error) {
	var of struct {
		UserID jsontext.Value `json:"user_id"`
	}
	err := json.Unmarshal(value, &of, jsontext.AllowDuplicateNames(true))
	if kind := jsontext.Value(value).Kind(); kind != '{' && (err == nil || errors.As(err, new(*json.SemanticError))) {
		return nil, errors.New("another JSON value")
	}
	if err != nil {
		return nil, err
	}
	switch of.UserID.Kind() {
	case '"':
		return jsontext.AppendUnquote(nil, of.UserID)
	case '0':
		return of.UserID, nil
	}
	return nil, nil
}

// interruptible makes a read that can block forever, as from a terminal or a pipe, end when ctx ends. Its
// goroutine ends when the reader does.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{pw}, struct{ io.Reader }{r}, make([]byte, 64*units.KiB))
		pw.CloseWithError(err) // nil means EOF
	}()
	context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	return pr
}
