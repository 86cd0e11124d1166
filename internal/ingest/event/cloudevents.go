package event

// CloudEvents 1.0.2: the parts of the specification, its Kafka protocol binding and its JSON event format that
// concern an event. In binary mode the value is the event, and headers hold the attributes. In structured mode
// the value is an envelope, and the event is its data.

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// Headers are the headers of a record that describe its value. The zero value means a plain event. If a name is
// repeated, the last value counts. Null means absent.
type Headers struct{ contentType, version, id, time []byte }

// Note records a header. It keeps the bytes until the value is decoded.
func (h *Headers) Note(key, value []byte) {
	switch len(key) {
	case len("ce_id"):
		if string(key) == "ce_id" {
			h.id = value
		}
	case len("ce_time"):
		if string(key) == "ce_time" {
			h.time = value
		}
	case len("content-type"):
		// Some producers capitalise it as in HTTP; the meaning is the same.
		if key[0]|0x20 == 'c' && bytes.EqualFold(key, []byte("content-type")) {
			h.contentType = value
		}
	case len("ce_specversion"):
		if string(key) == "ce_specversion" {
			h.version = value
		}
	}
}

// attribute is a CloudEvent's attribute: a JSON value in an envelope, or the text of a header.
type attribute struct {
	text []byte // nil: absent
	json bool
	at   int // byte offset in the envelope
}

func (a *attribute) there() bool { return a.text != nil }

const (
	structuredType = "application/cloudevents+json"
	structuredAny  = "application/cloudevents"
	batchedAny     = "application/cloudevents-batch"
)

// DecodeWith is Decode for the value of a record with headers.
func (d *Decoder) DecodeWith(h *Headers, value []byte, recordTime int64, ev *Event) *Bad {
	if hasPrefixFold(h.contentType, structuredAny) {
		return d.structured(h, value, recordTime, ev)
	}
	if h.version == nil {
		return d.Decode(value, recordTime, ev)
	}
	d.begin()
	d.forget()
	d.attributed = true
	d.id.text, d.time.text = h.id, h.time
	switch {
	case !isVersion(h.version):
		return d.malformed("ce_specversion is not 1.x, which alone is read: %s", shown(h.version))
	case !isJSON(h.contentType):
		return d.malformed("the data of the CloudEvent is not JSON, by its content-type: %s", shown(h.contentType))
	}
	if bad := d.read(value, d.fields.plain); bad != nil {
		return bad
	}
	return d.event(recordTime, ev)
}

// structured reads an envelope. Headers that repeat its attributes are ignored.
func (d *Decoder) structured(h *Headers, value []byte, recordTime int64, ev *Event) *Bad {
	d.begin()
	d.forget()
	d.attributed = true
	switch {
	case hasPrefixFold(h.contentType, batchedAny):
		return d.malformed("a batch of CloudEvents in one record, which Kafka's binding doesn't have: %s", shown(h.contentType))
	case !bytes.EqualFold(mediaType(h.contentType), []byte(structuredType)):
		return d.malformed("an event format of CloudEvents other than JSON: %s", shown(h.contentType))
	}
	if bad := d.read(value, d.fields.envelope); bad != nil {
		return bad
	}
	d.id, d.time = d.attribute(attributeIDField), d.attribute(attributeTimeField)
	if bad := d.checkEnvelope(); bad != nil {
		d.forget() // its content is no event
		return bad
	}
	if !d.at[base64Field].absent() {
		if bad := d.readBase64(); bad != nil {
			return bad
		}
	}
	return d.event(recordTime, ev)
}

// checkEnvelope checks that the envelope has data, of a kind that can be an event.
func (d *Decoder) checkEnvelope() *Bad {
	version, kind := d.at[versionField], d.at[contentTypeField]
	if version.absent() {
		return d.malformed("the envelope has no specversion: it is not a CloudEvent")
	}
	text, ok := d.string(version)
	if !ok || !isVersion(text) {
		return d.wrongAt(Malformed, "specversion", version, "is not 1.x, which alone is read")
	}
	if !kind.absent() {
		text, ok := d.string(kind)
		if !ok || !isJSON(text) {
			return d.wrongAt(Malformed, "datacontenttype", kind, "is not JSON's")
		}
	}
	data, binary := d.at[dataField], d.at[base64Field]
	switch {
	case data.absent() && binary.absent():
		return d.malformed("the envelope has no data")
	case !data.absent() && !binary.absent():
		return d.malformed("the envelope has both data and data_base64, at byte %d and %d", data.start, binary.start)
	case d.barred[dataField] != nil:
		return d.wrongAt(Malformed, "data", data, "is not an object")
	}
	return nil
}

// readBase64 decodes data_base64 and reads the result instead of the envelope.
func (d *Decoder) readBase64() *Bad {
	s := d.at[base64Field]
	text, ok := d.string(s)
	if !ok {
		return d.wrongAt(Malformed, "data_base64", s, "is not a string")
	}
	if size := base64.StdEncoding.DecodedLen(len(text)); cap(d.binary) < size {
		d.binary = make([]byte, size)
	}
	n, err := base64.StdEncoding.Decode(d.binary[:cap(d.binary)], text)
	if err != nil {
		return d.wrongAt(Malformed, "data_base64", s, "is not Base64")
	}
	d.decoded = true
	return d.read(d.binary[:n], d.fields.plain)
}

// string returns the text of a field, or false if it is not a string.
func (d *Decoder) string(s span) ([]byte, bool) {
	raw := d.raw(s)
	if raw[0] != '"' {
		return nil, false
	}
	text, err := d.text(raw)
	return text, err == nil
}

func (d *Decoder) attribute(f field) attribute {
	s := d.at[f]
	if s.absent() {
		return attribute{}
	}
	return attribute{text: d.raw(s), json: true, at: int(s.start)}
}

// attributeTime returns the time attribute of a CloudEvent whose data has no time, in Unix ms.
func (d *Decoder) attributeTime(recordTime int64) (int64, *Bad) {
	at, wrong, name := int64(0), "", "ce_time"
	switch {
	case !d.time.json:
		var ok bool
		if at, ok = rfc3339(d.time.text); !ok {
			wrong = "is not a time by RFC 3339"
		}
	case d.time.text[0] != '"':
		wrong = "is not a string"
	default:
		at, wrong = d.timeText(d.time.text)
	}
	if wrong == "" {
		wrong = d.outside(at, recordTime)
	}
	if wrong == "" {
		return at, nil
	}
	if d.time.json {
		name = fmt.Sprintf("time at byte %d", d.time.at)
	}
	return 0, &Bad{BadTime, fmt.Sprintf("%s %s: %s", name, wrong, shown(d.time.text))}
}

// ID returns the id of the last decoded event, even if the event is bad: the data's own id, else the
// CloudEvent's. It is nil if there is none, if it is not a string or an integer of 1 to 256 bytes, or if the
// value is not JSON. It is valid until the next Decode. It only serves to find the event again; counting does
// not depend on it.
func (d *Decoder) ID() []byte {
	if s := d.at[idField]; !s.absent() && d.barred[idField] == nil {
		if id := d.idOf(d.raw(s)); id != nil {
			return id
		}
	}
	switch {
	case d.id.json:
		return d.idOf(d.id.text)
	case len(d.id.text) < 1 || len(d.id.text) > maxUserBytes:
		return nil
	}
	return d.id.text
}

func (d *Decoder) idOf(raw []byte) []byte {
	id := raw
	switch {
	case raw[0] == '"' && len(raw) <= longestEscaped(maxUserBytes):
		text, err := d.text(raw)
		if err != nil {
			return nil
		}
		id = text
	case !isNumber(raw) || bytes.ContainsAny(raw, ".eE"):
		return nil
	}
	if len(id) < 1 || len(id) > maxUserBytes {
		return nil
	}
	return id
}

// isVersion reports whether a specversion is 1.x. All of these are read alike.
func isVersion(text []byte) bool {
	if len(text) < 3 || text[0] != '1' || text[1] != '.' {
		return false
	}
	for _, c := range text[2:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// isJSON reports whether a content type is JSON: */json or */*+json. An absent one is.
func isJSON(contentType []byte) bool {
	kind := mediaType(contentType)
	if len(kind) == 0 {
		return true
	}
	first, second, ok := bytes.Cut(kind, []byte("/"))
	return ok && len(first) > 0 && bytes.IndexByte(second, '/') < 0 &&
		(bytes.EqualFold(second, []byte("json")) || hasSuffixFold(second, "+json"))
}

// mediaType returns a content type without its parameters.
func mediaType(contentType []byte) []byte {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return bytes.Trim(kind, " \t")
}

func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && bytes.EqualFold(text[:len(prefix)], []byte(prefix))
}

func hasSuffixFold(text []byte, suffix string) bool {
	return len(text) >= len(suffix) && bytes.EqualFold(text[len(text)-len(suffix):], []byte(suffix))
}
