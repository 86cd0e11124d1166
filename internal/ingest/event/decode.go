package event

// How a value is read: once through, as JSON, noting where the last of each of
// our fields stands; then the fields, in the order of the reasons. So a fault in
// the JSON is found before any fault in a field, wherever the two stand.

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decoder reads values by one set of rules and reuses all of its memory. It is
// not safe for concurrent use: one a worker. Between calls it still refers to
// the last value.
type Decoder struct {
	rules  Rules
	boards map[string]struct{} // nil: any

	value   []byte
	source  bytes.Buffer
	json    *jsontext.Decoder
	options []jsontext.Options

	// The last of each field in value; the zero span where it is absent or null.
	user, points, board, occurred span

	listSource bytes.Buffer
	list       *jsontext.Decoder // reads a list of boards, once value is known to be JSON
	found      [maxBoards][]byte
	unescaped  []byte
}

// span is where a field's value stands, in bytes from the record value's start.
type span struct{ start, end int }

func (s span) absent() bool { return s.end == 0 }

// maxKept is how large a buffer for unescaped text is kept for the next event:
// eight boards or one id fit many times over, a hostile text doesn't stay.
const maxKept = 16 << 10

// NewDecoder makes a decoder for these rules.
func NewDecoder(rules Rules) *Decoder {
	d := &Decoder{
		rules: rules,
		// A repeated name isn't an error: its last value counts. And jsontext
		// calls half a surrogate pair invalid UTF-8, which it would refuse
		// anywhere in the value; so it is told not to look, and utf8.Valid looks.
		options: []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)},
	}
	d.json = jsontext.NewDecoder(&d.source, d.options...)
	d.list = jsontext.NewDecoder(&d.listSource, d.options...)
	if len(rules.Boards) > 0 {
		d.boards = make(map[string]struct{}, len(rules.Boards))
		for _, name := range rules.Boards {
			d.boards[name] = struct{}{}
		}
	}
	return d
}

// Decode reads a record's value into ev. recordTime is the record's time in Unix
// ms, and at or below 0 there is none. It returns nil and sets every field of ev,
// or says why the value is bad and leaves ev as it was.
func (d *Decoder) Decode(value []byte, recordTime int64, ev *Event) *Bad {
	d.unescaped = d.unescaped[:0]
	if cap(d.unescaped) > maxKept {
		d.unescaped = nil
	}
	if bad := d.read(value); bad != nil {
		return bad
	}
	user, bad := d.readUser()
	if bad != nil {
		return bad
	}
	points, bad := d.readPoints()
	if bad != nil {
		return bad
	}
	boards, bad := d.readBoards()
	if bad != nil {
		return bad
	}
	at, bad := d.readTime(recordTime)
	if bad != nil {
		return bad
	}
	*ev = Event{User: user, Points: points, Time: at, Boards: boards}
	return nil
}

// read checks all of the value's JSON and notes where the fields stand.
func (d *Decoder) read(value []byte) *Bad {
	if len(value) > d.rules.MaxEventBytes {
		return malformed("the value has %d bytes, more than the %d allowed", len(value), d.rules.MaxEventBytes)
	}
	if !utf8.Valid(value) {
		return malformed("the text is not UTF-8 at byte %d", firstInvalid(value))
	}
	d.value = value
	d.user, d.points, d.board, d.occurred = span{}, span{}, span{}, span{}
	d.source = *bytes.NewBuffer(value)
	d.json.Reset(&d.source, d.options...)

	switch kind := d.json.PeekKind(); kind {
	case jsontext.KindBeginObject:
		_, _ = d.json.ReadToken() // can't fail: it was peeked at
	case jsontext.KindInvalid:
		_, err := d.json.ReadToken()
		return notJSON(err, len(value))
	default:
		return malformed("the value is not an object but %s", kinds[kind])
	}
	for d.json.PeekKind() != jsontext.KindEndObject {
		name, err := d.json.ReadValue()
		if err != nil {
			return notJSON(err, len(value))
		}
		field := d.field(name)
		raw, err := d.json.ReadValue()
		if err != nil {
			return notJSON(err, len(value))
		}
		if field == nil {
			continue
		}
		if raw[0] == 'n' {
			*field = span{}
			continue
		}
		end := int(d.json.InputOffset())
		*field = span{end - len(raw), end}
	}
	_, _ = d.json.ReadToken() // can't fail: it was peeked at
	rest := value[d.json.InputOffset():]
	if data := bytes.TrimLeft(rest, " \t\r\n"); len(data) > 0 {
		return malformed("there is more after the object, at byte %d", len(value)-len(data))
	}
	return nil
}

// field is the span that a quoted name stands for, nil for an unknown name.
func (d *Decoder) field(name []byte) *span {
	switch string(name) {
	case `"user_id"`:
		return &d.user
	case `"points"`:
		return &d.points
	case `"board"`:
		return &d.board
	case `"occurred_at"`:
		return &d.occurred
	}
	// "\u0070oints" is the same name. What is longer than our longest name with
	// every letter escaped is none of ours.
	const longest = 6*len("occurred_at") + 2
	if len(name) > longest || bytes.IndexByte(name, '\\') < 0 {
		return nil
	}
	var buffer [longest]byte
	text, err := jsontext.AppendUnquote(buffer[:0], name)
	if err != nil {
		return nil // half a surrogate pair: not one of ours
	}
	switch string(text) {
	case "user_id":
		return &d.user
	case "points":
		return &d.points
	case "board":
		return &d.board
	case "occurred_at":
		return &d.occurred
	}
	return nil
}

// text is what a JSON string says. Where nothing is escaped it lies in the value
// itself. It fails on half a surrogate pair, which no UTF-8 can say.
func (d *Decoder) text(quoted []byte) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	from := len(d.unescaped)
	whole, err := jsontext.AppendUnquote(d.unescaped, quoted)
	if err != nil {
		return nil, fmt.Errorf("half a surrogate pair: %w", err)
	}
	d.unescaped = whole
	return whole[from:len(whole):len(whole)], nil
}

// raw is the JSON text of a field that isn't absent.
func (d *Decoder) raw(s span) []byte { return d.value[s.start:s.end] }

func firstInvalid(value []byte) int {
	for i := 0; i < len(value); {
		r, size := utf8.DecodeRune(value[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(value)
}
