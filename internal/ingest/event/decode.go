package event

// How a value is read: once through, as JSON, noting where the last of each of
// our fields stands; then the fields, in the order of the reasons. So a fault in
// the JSON is found before any fault in a field, wherever the two stand.

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	boardrules "github.com/standings/standings/internal/rules"
)

// Decoder reads values by one set of rules and reuses all of its memory. It is
// not safe for concurrent use: one a worker. Between calls it still refers to
// the last value.
type Decoder struct {
	rules  Rules
	fields *Fields
	boards map[string]struct{} // nil: any

	value   []byte // what is read: the record's value, or what data_base64 held
	decoded bool   // the latter
	source  bytes.Buffer
	json    *jsontext.Decoder
	options []jsontext.Options
	at      []span // the last of each field in value
	// barred is what stands in a field's place where a name on the way to it is no
	// object; at is then its own. Nothing is in it while noneBarred.
	barred     []*member
	noneBarred bool
	id, time   attribute // of a CloudEvent
	attributed bool      // value is that of a CloudEvent

	listSource bytes.Buffer
	list       *jsontext.Decoder // reads a list of boards, once value is known to be JSON
	found      [maxBoards][]byte
	// others are the boards that aren't by the default rule; nil where there are none.
	others    map[string]*counted
	any       *counted // of boards that aren't named in it
	tuples    [maxBoards]boardrules.Tuple
	unescaped []byte
	binary    []byte // what data_base64 held
}

// span is where a field's value stands, in bytes from the value's start. It is
// the zero span where the field is absent or null.
type span struct{ start, end int32 }

func (s span) absent() bool { return s.end == 0 }

// maxKept is how large a buffer for unescaped text is kept for the next event:
// eight boards or one id fit many times over, a hostile text doesn't stay.
const maxKept = 16 << 10

var ownNames = func() *Fields {
	f, err := NewFields(Paths{})
	if err != nil {
		panic(err)
	}
	return f
}()

// NewDecoder makes a decoder for these rules.
func NewDecoder(by Rules) *Decoder {
	d := &Decoder{
		rules:  by,
		fields: by.Fields,
		// A repeated name isn't an error: its last value counts. And jsontext
		// calls half a surrogate pair invalid UTF-8, which it would refuse
		// anywhere in the value; so it is set not to look, and utf8.Valid looks.
		options: []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)},
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

// Decode reads the value of a record without headers into ev. recordTime is the
// record's time in Unix ms, and at or below 0 there is none. It returns nil and
// sets every field of ev, or says why the value is bad and leaves ev as it was.
func (d *Decoder) Decode(value []byte, recordTime int64, ev *Event) *Bad {
	d.begin()
	if bad := d.read(value, d.fields.plain); bad != nil {
		return bad
	}
	return d.event(recordTime, ev)
}

// begin forgets the last value.
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

// event reads the fields, once all is known to be JSON.
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
	// Field by field, and what is nil already is left so: this is for every event.
	ev.User, ev.Points, ev.Time, ev.Boards = user, points, at, boards
	if name != nil || ev.Name != nil {
		ev.Name = name
	}
	if ev.Tuples != nil {
		ev.Tuples = nil
	}
	return nil
}

// read checks all of the value's JSON and notes where the fields stand. A value
// that isn't JSON has none.
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
		_, _ = d.json.ReadToken() // can't fail: it was peeked at
	case jsontext.KindInvalid:
		_, err := d.json.ReadToken()
		return d.notJSON(err)
	default: // by its first byte: what begins like null may be any text
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

// forget drops what was noted of the fields.
func (d *Decoder) forget() {
	clear(d.at)
	if !d.noneBarred {
		clear(d.barred)
		d.noneBarred = true
	}
}

// readObject reads on to the end of an object of which the brace is read. It
// calls itself only along the paths of our fields, which are short.
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
	_, _ = d.json.ReadToken() // can't fail: it was peeked at
	return nil
}

// readInner reads an object that our fields lie in. Of a repeated one the last
// counts, and what an earlier one had doesn't.
func (d *Decoder) readInner(m *member) error {
	d.bar(m, span{})
	_, _ = d.json.ReadToken() // can't fail: it was peeked at
	if m.field != noField {
		at := int32(d.json.InputOffset())
		d.at[m.field] = span{at - 1, at}
	}
	return d.readObject(m.inner)
}

// bar notes of all fields that a name leads to what stands there instead. With the
// zero span they are absent.
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

// member is what a quoted name stands for, nil for an unknown name.
func (d *Decoder) member(o *object, name []byte) *member {
	// The usual names, as constants: compared without a call.
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
	// "\u0070oints" is the same name. What is longer than our longest name with
	// every letter escaped is none of ours.
	if len(name) > o.longest || bytes.IndexByte(name, '\\') < 0 {
		return nil
	}
	kept := len(d.unescaped)
	text, err := jsontext.AppendUnquote(d.unescaped, name)
	if err != nil {
		return nil // half a surrogate pair: not one of ours
	}
	d.unescaped = text[:kept]
	for _, m := range o.members {
		if string(text[kept:]) == m.name {
			return m
		}
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
