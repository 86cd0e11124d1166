package main

// Where the published records come from: the generator, or lines of a file.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/deadletters"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/sample"
)

// source gives records one by one. What next returns holds until the call after
// it, but for the headers, which are the caller's; io.EOF is the end.
type source interface {
	next() (outgoing, error)
	setNow(time.Time)
}

// samples is the source of made-up events. It counts the bad ones by reason.
type samples struct {
	generator *sample.Generator
	buf       []byte
	fixed     bool // the present was given, and stays
	bad       map[string]int64
}

func (s *samples) setNow(now time.Time) {
	if !s.fixed {
		s.generator.SetNow(now)
	}
}

func (s *samples) next() (outgoing, error) {
	var e sample.Event
	e, s.buf = s.generator.Next(s.buf[:0])
	if e.Reason != "" {
		s.bad[e.Reason]++
	}
	return outgoing{key: e.Key, value: e.Value}, nil
}

// lineBytes is the longest line that is read. Kafka's limits are lower.
const lineBytes = 64 * units.MiB

// lines is the source of NDJSON: a line is a record's value as it stands, and
// its user_id the key; or it is a dead letter, with all that its record has. Blank
// lines are skipped.
type lines struct {
	topic   string // that it is for: a dead letter of another one is refused
	scanner *bufio.Scanner
	decoder *jsontext.Decoder
	line    bytes.Reader
	number  int
	raw     bool // what isn't a JSON object goes through too, without a key
	key     []byte
}

func newLines(r io.Reader, topic string, raw bool) *lines {
	reader := &watchedReader{Reader: r}
	l := &lines{topic: topic, scanner: bufio.NewScanner(reader), raw: raw}
	l.scanner.Buffer(make([]byte, 64*units.KiB), lineBytes)
	l.scanner.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		// What stands before a failed or interrupted read is no line, but the
		// start of one.
		if atEOF && reader.err != nil && bytes.IndexByte(data, '\n') < 0 {
			return 0, nil, reader.err
		}
		return bufio.ScanLines(data, atEOF)
	})
	l.decoder = jsontext.NewDecoder(&l.line)
	return l
}

// watchedReader keeps the error that reading ended with, unless it is the end.
type watchedReader struct {
	io.Reader
	err error
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

func (l *lines) setNow(time.Time) {}

func (l *lines) next() (outgoing, error) {
	for l.scanner.Scan() {
		l.number++
		line := l.scanner.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if deadletters.LooksLikeLetter(line) {
			o, err := l.letter(line)
			if !errors.Is(err, deadletters.ErrNoLetter) {
				return o, err
			}
		}
		key, err := l.user(line)
		if err != nil && !l.raw {
			return outgoing{}, lineErrorf("line %d isn't a JSON object: %v (--raw publishes it all the same)", l.number, err)
		}
		return outgoing{key: key, value: line}, nil
	}
	switch err := l.scanner.Err(); {
	case err == nil:
		return outgoing{}, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return outgoing{}, fmt.Errorf("line %d is longer than %s", l.number+1, units.FormatBytes(lineBytes))
	default:
		return outgoing{}, fmt.Errorf("read after line %d: %w", l.number, err)
	}
}

// lineError is a line that isn't published; those after it can be read.
type lineError struct{ text string }

func (e *lineError) Error() string { return e.text }

func lineErrorf(format string, args ...any) error {
	return &lineError{fmt.Sprintf(format, args...)}
}

// letter is the mended copy of a dead letter. A line that was begun as one and is
// broken isn't published as an event, not even raw. errNoLetter says that it is none.
func (l *lines) letter(line []byte) (outgoing, error) {
	m, err := deadletters.ParseLine(line)
	if errors.Is(err, deadletters.ErrNoLetter) && !bytes.HasPrefix(bytes.TrimSpace(line), []byte(`{"`+deadletters.Name+`"`)) {
		return outgoing{}, err
	}
	switch {
	case errors.Is(err, deadletters.ErrNoLetter):
		_, err := deadletters.ObjectOf(line)
		return outgoing{}, lineErrorf("line %d was a dead letter and isn't JSON any more: %v", l.number, err)
	case err != nil:
		// Without the sentinel: it is a letter, though not one that can be read.
		return outgoing{}, lineErrorf("line %d is a dead letter that can't be published: %v", l.number, err)
	case m.Topic != l.topic:
		return outgoing{}, lineErrorf("line %d is a dead letter of %s, and this publishes to %s: export and publish a topic at a time", l.number, m.Topic, l.topic)
	}
	if m.IsText && !l.raw && !deadletters.IsObject(m.Value) {
		return outgoing{}, lineErrorf("line %d: the value of %s isn't mended, it is no JSON object (--raw publishes it all the same)", l.number, m.Origin())
	}
	headers := append(m.Headers, kafka.Header{Key: deadletters.MendsHeader, Value: []byte(m.Origin())})
	return outgoing{key: m.Key, value: m.Value, letter: true, headers: headers, at: m.At}, nil
}

// user is the user_id of an object, as the consumer will read it: text, or an
// integer as it is written; nil if there is none. Its error says why value isn't
// one JSON object.
func (l *lines) user(value []byte) ([]byte, error) {
	l.line.Reset(value)
	l.decoder.Reset(&l.line, jsontext.AllowDuplicateNames(true))
	if l.decoder.PeekKind() != '{' {
		if _, err := l.decoder.ReadValue(); err != nil {
			return nil, err
		}
		return nil, errors.New("it is another JSON value")
	}
	if _, err := l.decoder.ReadToken(); err != nil {
		return nil, err
	}
	var key []byte
	for l.decoder.PeekKind() != '}' {
		name, err := l.decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		if name.String() != "user_id" {
			if err := l.decoder.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		id, err := l.decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		if key, err = l.keyOf(id); err != nil {
			return nil, err
		}
	}
	if _, err := l.decoder.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := l.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return key, nil
}

func (l *lines) keyOf(id jsontext.Value) ([]byte, error) {
	switch id.Kind() {
	case '"':
		key, err := jsontext.AppendUnquote(l.key[:0], id)
		l.key = key
		return key, err
	case '0':
		l.key = append(l.key[:0], id...)
		return l.key, nil
	}
	return nil, nil
}

// interruptible lets a read that may block for ever, as from a terminal or a
// pipe, end with ctx. The goroutine behind it ends with the reader.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	pr, pw := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{pw}, struct{ io.Reader }{r}, make([]byte, 64*units.KiB))
		pw.CloseWithError(err) // nil is EOF
	}()
	context.AfterFunc(ctx, func() { pw.CloseWithError(ctx.Err()) })
	return pr
}
