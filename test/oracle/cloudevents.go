package oracle

// Finds the event in a record: in its value, in the data of a CloudEvent, or in fields that the
// configuration renames. docs/events.md specifies it.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Header is a header of a record. A nil Value is null.
type Header struct {
	Key   string
	Value []byte
}

var (
	cloudEvent     = regexp.MustCompile(`(?i)\Aapplication/cloudevents`)
	cloudEventJSON = regexp.MustCompile(`(?i)\Aapplication/cloudevents\+json[ \t]*(;|\z)`)
	// contentJSON matches */json, */*+json and the empty type, each with optional parameters.
	contentJSON = regexp.MustCompile(`(?i)\A[ \t]*([^;/]+/([^;/]*\+)?json[ \t]*)?(;|\z)`)
	version1    = regexp.MustCompile(`\A1\.[0-9]+\z`)
)

type object map[string]json.RawMessage

// parts holds a record's event, and the id and time of a CloudEvent outside of its data, as JSON; absent ones
// are nil.
type parts struct{ event, id, time json.RawMessage }

// open finds the event. It returns false if the record is malformed before the event is reached.
func (c Config) open(r Record) (p parts, ok bool) {
	h := map[string][]byte{}
	for _, header := range r.Headers {
		key := header.Key
		if strings.EqualFold(key, "content-type") {
			key = "content-type"
		}
		h[key] = header.Value // the last of repeated headers counts
	}
	if cloudEvent.Match(h["content-type"]) {
		return c.openEnvelope(r.Value, cloudEventJSON.Match(h["content-type"]))
	}
	p.event = r.Value
	if h["ce_specversion"] == nil {
		return p, true
	}
	p.id, p.time = header(h["ce_id"]), header(h["ce_time"])
	return p, version1.Match(h["ce_specversion"]) && contentJSON.Match(h["content-type"])
}

// header returns a header's text as JSON, nil if the header is absent.
func header(value []byte) json.RawMessage {
	if value == nil {
		return nil
	}
	quoted, err := json.Marshal(string(value))
	if err != nil {
		return nil
	}
	return quoted
}

func (c Config) openEnvelope(value []byte, known bool) (p parts, ok bool) {
	envelope, ok := c.document(value)
	if !ok || !known { // the content of an unknown format is not read
		return p, false
	}
	p.id, p.time = envelope["id"], envelope["time"]
	version, ok := text(envelope["specversion"])
	if !ok || !version1.MatchString(version) {
		return p, false
	}
	if kind := envelope["datacontenttype"]; kind != nil {
		if said, ok := text(kind); !ok || !contentJSON.MatchString(said) {
			return p, false
		}
	}
	data, encoded := envelope["data"], envelope["data_base64"]
	if encoded == nil || data != nil {
		p.event = data
		return p, encoded == nil && data != nil
	}
	said, ok := text(encoded)
	if !ok {
		return p, false
	}
	decoded, err := base64.StdEncoding.DecodeString(said)
	p.event = decoded
	return p, err == nil
}

// document parses a complete text that must be an object, and returns its members that are not null.
func (c Config) document(value []byte) (object, bool) {
	if len(value) > c.MaxEventBytes || !utf8.Valid(value) || !json.Valid(value) {
		return nil, false
	}
	return members(value)
}

// members returns an object's members that are not null.
func members(value json.RawMessage) (object, bool) {
	all := object{}
	if value = bytes.TrimLeft(value, " \t\r\n"); len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &all) != nil {
		return nil, false
	}
	for name, value := range all {
		if all[name] = bytes.TrimSpace(value); string(all[name]) == "null" {
			delete(all, name)
		}
	}
	return all, true
}

// field returns the value at the end of a path from an object, nil if there is no value. If an inner step is not
// an object, it returns a value of the wrong type for every field.
func (c Config) field(from object, name string) json.RawMessage {
	path := c.Fields[name]
	if path == nil {
		path = []string{name}
	}
	for i, step := range path {
		value := from[step]
		if i == len(path)-1 || value == nil {
			return value
		}
		inner, ok := members(value)
		if !ok {
			return json.RawMessage("false")
		}
		from = inner
	}
	return nil
}
