package event

// An independent implementation of the contract: encoding/json for the grammar, math/big for the numbers,
// regular expressions and time.Parse for the texts. It shares no code with the decoder, and is slow and plain.
//
// In some cases encoding/json is laxer than the contract. The oracle checks these separately:
//   - encoding/json writes U+FFFD for invalid UTF-8 and for half a surrogate pair, so the oracle searches the
//     raw text for both;
//   - a struct's fields would match names in any case, so the oracle reads a map;
//   - encoding/json reads null into a map without an error.
// It is never stricter: it also allows 10,000 levels of nesting, and it also keeps the last value of a repeated
// name.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// record is a value with its headers.
type record struct {
	headers [][2]string // the value "\x00" stands for null
	value   []byte
	time    int64
}

// taken returns the headers as the decoder notes them.
func (r record) taken() *Headers {
	h := &Headers{}
	for _, header := range r.headers {
		text := []byte(header[1])
		if header[1] == "\x00" {
			text = nil
		}
		h.Note([]byte(header[0]), text)
	}
	return h
}

// oracleOf returns the event of a record whose fields have these paths, by field, and its id; or the reason why
// it is bad.
func oracleOf(r Rules, paths map[string][]string, rec record) (ev Event, id string, reason Reason) {
	event, attributes, ok := oracleEvent(r, rec)
	attributed, valid := oracleUser(attributes["id"])
	if !valid {
		attributed = ""
	}
	if !ok {
		return ev, attributed, Malformed
	}
	fields := map[string]json.RawMessage{}
	for _, name := range []string{"event_id", "user_id", "points", "board", "occurred_at", "name"} {
		path := paths[name]
		if path == nil {
			path = []string{name}
		}
		fields[name] = oracleAt(event, path)
	}
	id, ok = oracleUser(fields["event_id"])
	if !ok {
		id = attributed
	}
	user, ok := oracleUser(fields["user_id"])
	if !ok {
		return ev, id, Invalid
	}
	var name []byte
	if paths["name"] != nil && fields["name"] != nil {
		text, ok := oracleString(fields["name"])
		if n := len([]rune(text)); !ok || n < 1 || n > 64 {
			return ev, id, Invalid
		}
		name = []byte(text)
	}
	points, ok := oracleInteger(fields["points"])
	if !ok || new(big.Int).Abs(points).Cmp(big.NewInt(r.MaxPoints)) > 0 {
		return ev, id, Invalid
	}
	boards, ok := oracleBoards(r, fields["board"])
	if !ok {
		return ev, id, UnknownBoard
	}
	occurred := fields["occurred_at"]
	if occurred == nil {
		// A header's text is not JSON, and a number there is not a time. Therefore it must be quoted.
		if occurred = attributes["time"]; occurred != nil && occurred[0] != '"' {
			return ev, id, BadTime
		}
	}
	at, ok := oracleTime(r, occurred, rec.time)
	if !ok {
		return ev, id, BadTime
	}
	return Event{User: []byte(user), Name: name, Points: points.Int64(), Time: at.Int64(), Boards: boards}, id, ""
}

// oracleAt follows a path. It returns false, which is valid for no field, if a value on the path is not an
// object.
func oracleAt(object map[string]json.RawMessage, path []string) json.RawMessage {
	raw := object[path[0]]
	if len(path) == 1 || raw == nil {
		return raw
	}
	inner, ok := oracleMembers(raw)
	if !ok {
		return json.RawMessage("false")
	}
	return oracleAt(inner, path[1:])
}

var (
	structuredMode = regexp.MustCompile(`(?i)^application/cloudevents`)
	structuredJSON = regexp.MustCompile(`(?i)^application/cloudevents\+json[ \t]*(;|$)`)
	jsonType       = regexp.MustCompile(`(?i)^[ \t]*([^;/]+/([^;/]*\+)?json[ \t]*)?(;|$)`)
	version1       = regexp.MustCompile(`^1\.[0-9]+$`)
)

// oracleEvent returns the event of a record, as an object, and the id and time attributes next to it, as JSON.
func oracleEvent(r Rules, rec record) (event, attributes map[string]json.RawMessage, ok bool) {
	headers := map[string]string{}
	for _, h := range rec.headers {
		name := h[0]
		if strings.EqualFold(name, "content-type") {
			name = "content-type"
		}
		if headers[name] = h[1]; h[1] == "\x00" {
			delete(headers, name)
		}
	}
	version, binary := headers["ce_specversion"]
	attributes = map[string]json.RawMessage{}
	if !structuredMode.MatchString(headers["content-type"]) {
		if binary {
			for _, name := range []string{"id", "time"} {
				if text, ok := headers["ce_"+name]; ok {
					attributes[name], _ = json.Marshal(text)
				}
			}
			if !version1.MatchString(version) || !jsonType.MatchString(headers["content-type"]) {
				return nil, attributes, false
			}
		}
		event, ok = oracleObject(r, rec.value)
		return event, attributes, ok
	}
	if !structuredJSON.MatchString(headers["content-type"]) {
		return nil, nil, false
	}
	envelope, ok := oracleObject(r, rec.value)
	if !ok {
		return nil, nil, false
	}
	version, ok = oracleString(envelope["specversion"])
	kind, kindOK := oracleString(envelope["datacontenttype"])
	kindOK = kindOK && jsonType.MatchString(kind) || envelope["datacontenttype"] == nil
	data, base := envelope["data"], envelope["data_base64"]
	if !ok || !version1.MatchString(version) || !kindOK || (data == nil) == (base == nil) {
		return nil, envelope, false
	}
	if data != nil {
		event, ok = oracleMembers(data)
		return event, envelope, ok
	}
	text, ok := oracleString(base)
	decoded, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, envelope, false
	}
	event, ok = oracleObject(r, decoded)
	return event, envelope, ok
}

// oracleMembers returns the members of an object that are not null. The text is known to be JSON.
func oracleMembers(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, false
	}
	for name, raw := range fields {
		if string(raw) == "null" {
			delete(fields, name)
		}
	}
	return fields, true
}

func oracleObject(r Rules, value []byte) (map[string]json.RawMessage, bool) {
	if len(value) > r.MaxEventBytes || !utf8.Valid(value) {
		return nil, false
	}
	return oracleMembers(value)
}

var (
	oneEscape   = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)
	surrogate   = regexp.MustCompile(`^\\u[dD][89a-fA-F][0-9a-fA-F]{2}$`)
	whole       = regexp.MustCompile(`^-?[0-9]+$`)
	board       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	number      = regexp.MustCompile(`^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)
	rfc3339Text = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)
)

// oracleString returns the text of a JSON string, if the value is a string without half surrogate pairs.
func oracleString(raw json.RawMessage) (string, bool) {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	for _, escape := range oneEscape.FindAll(raw, -1) {
		if surrogate.Match(escape) {
			return "", false
		}
	}
	return text, true
}

func oracleUser(raw json.RawMessage) (string, bool) {
	text, ok := oracleString(raw)
	if !ok && whole.Match(raw) {
		text, ok = string(raw), true
	}
	return text, ok && len(text) >= 1 && len(text) <= 256
}

func oracleInteger(raw json.RawMessage) (*big.Int, bool) {
	m := number.FindSubmatch(raw)
	if m == nil {
		return nil, false
	}
	if len(bytes.Trim(append(append([]byte{}, m[1]...), m[2]...), "0")) == 0 {
		return new(big.Int), true
	}
	// math/big would write 1e999999999 out. With more zeros than the text has digits, the number is a fraction
	// or larger than any limit.
	if exp, err := strconv.Atoi(string(m[3])); len(m[3]) > 0 && (err != nil || max(exp, -exp) > len(raw)+30) {
		return nil, false
	}
	n, ok := new(big.Rat).SetString(string(raw))
	if !ok || !n.IsInt() {
		return nil, false
	}
	return n.Num(), true
}

func oracleBoards(r Rules, raw json.RawMessage) ([][]byte, bool) {
	var listed []json.RawMessage
	switch {
	case raw == nil:
		listed = []json.RawMessage{json.RawMessage(`"global"`)}
	case raw[0] == '"':
		listed = []json.RawMessage{raw}
	case json.Unmarshal(raw, &listed) != nil:
		return nil, false
	}
	if len(listed) < 1 || len(listed) > 8 {
		return nil, false
	}
	var boards [][]byte
	seen := map[string]bool{}
	for _, entry := range listed {
		name, ok := oracleString(entry)
		if !ok || !board.MatchString(name) {
			return nil, false
		}
		if len(r.Boards) > 0 && !strings.Contains("\n"+strings.Join(r.Boards, "\n")+"\n", "\n"+name+"\n") {
			return nil, false
		}
		if !seen[name] {
			seen[name] = true
			boards = append(boards, []byte(name))
		}
	}
	return boards, true
}

func oracleTime(r Rules, raw json.RawMessage, recordTime int64) (*big.Int, bool) {
	at, record := new(big.Int), big.NewInt(recordTime)
	text, isText := oracleString(raw)
	switch {
	case raw == nil:
		if recordTime <= 0 {
			return nil, false
		}
		at = record
	case isText:
		ms, ok := oracleRFC3339(text)
		if !ok {
			return nil, false
		}
		at.SetInt64(ms)
	default:
		n, ok := oracleInteger(raw)
		if !ok {
			return nil, false
		}
		if n.IsInt64() && n.Int64() >= 100_000_000 && n.Int64() < 10_000_000_000 { // seconds
			return nil, false
		}
		at = n
	}
	end := new(big.Int).Mul(new(big.Int).Lsh(big.NewInt(1), 32), big.NewInt(1000))
	if at.Sign() < 0 || at.Cmp(end) >= 0 {
		return nil, false
	}
	latest := new(big.Int).Add(record, big.NewInt(r.MaxFuture))
	return at, raw == nil || recordTime <= 0 || at.Cmp(latest) <= 0
}

func oracleRFC3339(text string) (int64, bool) {
	if !rfc3339Text.MatchString(text) {
		return 0, false
	}
	text = strings.ToUpper(text)
	leap := text[17:19] == "60"
	if leap {
		text = text[:17] + "59" + text[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	if leap {
		t = t.Add(time.Second).UTC()
		if t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0 {
			return 0, false
		}
	}
	return t.UnixMilli(), true
}
