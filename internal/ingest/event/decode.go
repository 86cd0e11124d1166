package event

// The decoder reads a value once, as JSON, and records the position of the last occurrence of each field. It
// then reads the fields in the order of the reasons. A fault in the JSON is therefore found before any fault in
// a field, wherever the two are.

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	boardrules "github.com/standings/standings/internal/rules"
)

// Decoder reads values by one set of rules and reuses all of its memory. It is not safe for concurrent use:
// each worker has its own. Between calls it still refers to the last value.
type Decoder struct {
	rules  Rules
	fields *Fields
	boards map[string]struct{} // nil: any

	reading
	boardList
	cloudEvent

	// others are the boards with other rules than the default one; nil if there are none.
	others    map[string]*counted
	any       *counted // the rule of boards that others does not name
	tuples    [maxBoards]boardrules.Tuple
	unescaped []byte
}

// reading is the state of reading one text.
type reading struct {
	value   []byte // the text being read: the record's value, or the decoded data_base64
	decoded bool   // value is the decoded data_base64
	source  bytes.Buffer
	json    *jsontext.Decoder
	options []jsontext.Options
	at      []span // the last occurrence of each field in value
	// barred has, for a field whose path leads through a value that is not an object, that path's member; at
	// then has the position of that value. It is empty while noneBarred is true.
	barred     []*member
	noneBarred bool
}

// cloudEvent is the state of reading a CloudEvent.
type cloudEvent struct {
	id, time   attribute
	attributed bool   // value is a CloudEvent's
	binary     []byte // the decoded data_base64
}

// boardList is the state of reading a list of boards.
type boardList struct {
	listSource bytes.Buffer
	list       *jsontext.Decoder // once value is known to be JSON
	found      [maxBoards][]byte
}

// span is the position of a field's value, in bytes from the value's start. It is the zero span if the field is
// absent or null.
type span struct{ start, end int32 }

func (s span) absent() bool { return s.end == 0 }

// maxKept is the maximum size of the buffer for unescaped text that is kept for the next event. It holds eight
// boards or one id many times, but not the text of a hostile event.
const maxKept = 16 << 10

var ownNames = func() *Fields {
	f, err := NewFields(Paths{})
	if err != nil {
		panic(err)
	}
	return f
}()

// NewDecoder returns a decoder for these rules.
func NewDecoder(by Rules) *Decoder {
	d := &Decoder{
		rules:  by,
		fields: by.Fields,
		// A repeated name is not an error: its last value counts. jsontext treats half a surrogate pair as
		// invalid UTF-8 and would refuse it anywhere in the value. Therefore it is set not to check, and
		// utf8.Valid checks.
		reading: reading{options: []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}},
	}
	if d.fields == nil {
		d.fields = ownNames
	}
	d.byRules(by.Others)
	d.at, d.barred = make([]span, d.fields.count), make([]*member, d.fields.count)
	d.json = jsontext.NewDecoder(&d.source, d.options...)
	d.list = jsontext.NewDecoder(&d.listSource, d.options...)
	if len(by.Boards) > 0 {
		d.boards = make(map[string]struct{}, len(by.Boards))
		for _, name := range by.Boards {
			d.boards[name] = struct{}{}
		}
	}
	return d
}

// Decode reads the value of a record without headers into ev. recordTime is the record's time in Unix ms; 0 or
// less means none. It returns nil and sets every field of ev, or returns why the value is bad and leaves ev
// unchanged.
func (d *Decoder) Decode(value []byte, recordTime int64, ev *Event) *Bad {
	d.begin()
	if bad := d.read(value, d.fields.plain); bad != nil {
		return bad
	}
	return d.event(recordTime, ev)
}

// begin clears the state of the last value.
func (d *Decoder) begin() {
	d.unescaped = d.unescaped[:0]
	if cap(d.unescaped) > maxKept {
		d.unescaped = nil
	}
	if cap(d.binary) > maxKept {
		d.binary = nil
	}
	if d.attributed {
		d.id, d.time, d.attributed, d.decoded = attribute{}, attribute{}, false, false
	}
}

// event reads the fields, once the whole value is known to be JSON.
func (d *Decoder) event(recordTime int64, ev *Event) *Bad {
	user, bad := d.readUser()
	if bad != nil {
		return bad
	}
	var name []byte
	if d.fields.named {
		if name, bad = d.readName(); bad != nil {
			return bad
		}
	}
	if d.others != nil {
		if bad := d.eventByRules(user, recordTime, ev); bad != nil {
			return bad
		}
		ev.Name = name
		return nil
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
	// This runs for every event, so it sets single fields, and skips those that are nil already.
	ev.User, ev.Points, ev.Time, ev.Boards = user, points, at, boards
	if name != nil || ev.Name != nil {
		ev.Name = name
	}
	if ev.Tuples != nil {
		ev.Tuples = nil
	}
	return nil
}

// read checks the JSON of the whole value and records the fields' positions. If the value is not JSON, it
// records none.
func (d *Decoder) read(value []byte, wanted *object) *Bad {
	d.forget()
	d.value = value
	if len(value) > d.rules.MaxEventBytes {
		return d.malformed("the value has %d bytes, more than the %d allowed", len(value), d.rules.MaxEventBytes)
	}
	if what := foreign(value); what != "" {
		return d.malformed("%s", what)
	}
	if !utf8.Valid(value) {
		return d.malformed("the text is not UTF-8 at byte %d", firstInvalid(value))
	}
	d.source = *bytes.NewBuffer(value)
	d.json.Reset(&d.source, d.options...)

	switch kind := d.json.PeekKind(); kind {
	case jsontext.KindBeginObject:
		_, _ = d.json.ReadToken() // cannot fail: the token was peeked at
	case jsontext.KindInvalid:
		_, err := d.json.ReadToken()
		return d.notJSON(err)
	default: // PeekKind only checks the first byte: a text that starts like null may be anything
		if err := d.json.SkipValue(); err != nil {
			return d.notJSON(err)
		}
		return d.malformed("the value is not an object but %s", kinds[kind])
	}
	if err := d.readObject(wanted); err != nil {
		d.forget()
		return d.notJSON(err)
	}
	rest := value[d.json.InputOffset():]
	if data := bytes.TrimLeft(rest, " \t\r\n"); len(data) > 0 {
		d.forget()
		return d.malformed("there is more after the object, at byte %d", len(value)-len(data))
	}
	return nil
}

// forget clears the recorded positions.
func (d *Decoder) forget() {
	clear(d.at)
	if !d.noneBarred {
		clear(d.barred)
		d.noneBarred = true
	}
}

// readObject reads to the end of an object whose opening brace has been read. It recurses only along the paths
// of the fields, which are short.
func (d *Decoder) readObject(wanted *object) error {
	for d.json.PeekKind() != jsontext.KindEndObject {
		name, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		m := d.member(wanted, name)
		if m != nil && m.inner != nil && d.json.PeekKind() == jsontext.KindBeginObject {
			if err := d.readInner(m); err != nil {
				return err
			}
			continue
		}
		raw, err := d.json.ReadValue()
		switch {
		case err != nil:
			return err
		case m == nil:
			continue
		}
		at := span{}
		if raw[0] != 'n' {
			end := int32(d.json.InputOffset())
			at = span{end - int32(len(raw)), end}
		}
		if m.inner == nil {
			d.at[m.field] = at
			continue
		}
		d.bar(m, at)
	}
	_, _ = d.json.ReadToken() // cannot fail: the token was peeked at
	return nil
}

// readInner reads an object that contains fields. If its name is repeated, the last object counts, and the
// fields of earlier ones do not.
func (d *Decoder) readInner(m *member) error {
	d.bar(m, span{})
	_, _ = d.json.ReadToken() // cannot fail: the token was peeked at
	if m.field != noField {
		at := int32(d.json.InputOffset())
		d.at[m.field] = span{at - 1, at}
	}
	return d.readObject(m.inner)
}

// bar records, for all fields below a name, the value that is there instead of an object. With the zero span,
// the fields are absent.
func (d *Decoder) bar(m *member, at span) {
	by := m
	if at.absent() {
		by = nil
	}
	for f, in := range m.set {
		if in {
			d.at[f], d.barred[f] = at, by
		}
	}
	d.noneBarred = false
}

// member returns the member with a quoted name, or nil for an unknown name.
func (d *Decoder) member(o *object, name []byte) *member {
	// The usual names as constants, which are compared without a call.
	switch string(name) {
	case `"event_id"`:
		return o.own[idField]
	case `"user_id"`:
		return o.own[userField]
	case `"points"`:
		return o.own[pointsField]
	case `"board"`:
		return o.own[boardField]
	case `"occurred_at"`:
		return o.own[occurredField]
	}
	if len(name) < len(o.first) {
		for m := o.first[len(name)]; m != nil; m = m.next {
			if string(name) == m.plain {
				return m
			}
		}
	}
	// "\u0070oints" is the same name as "points". A name longer than the longest one with every character
	// escaped is unknown.
	if len(name) > o.longest || bytes.IndexByte(name, '\\') < 0 {
		return nil
	}
	kept := len(d.unescaped)
	text, err := jsontext.AppendUnquote(d.unescaped, name)
	if err != nil {
		return nil // half a surrogate pair: an unknown name
	}
	d.unescaped = text[:kept]
	for _, m := range o.members {
		if string(text[kept:]) == m.name {
			return m
		}
	}
	return nil
}

// text returns the text of a JSON string. Without escapes it is part of the value itself. It returns an error
// for half a surrogate pair, which UTF-8 cannot represent.
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

// raw returns the JSON text of a field that is not absent.
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
