package event

// The checks of each field, once the value is known to be an object. The first byte of a JSON text shows its
// kind.

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// longestEscaped returns the maximum size in JSON of a text of n bytes: each may be written as \u0041, and the
// quotes add two. A longer JSON text need not be unescaped to be refused.
func longestEscaped(n int) int { return 6*n + 2 }

func (d *Decoder) readUser() ([]byte, *Bad) {
	s := d.at[userField]
	switch {
	case s.absent():
		return nil, d.missing(Invalid, userField)
	case d.barred[userField] != nil:
		return nil, d.noObject(Invalid, userField)
	}
	raw := d.raw(s)
	user := raw
	switch kind := jsontext.Kind(raw[0]); {
	case kind == jsontext.KindString:
		if len(raw) > longestEscaped(maxUserBytes) {
			return nil, d.wrong(Invalid, userField, "is longer than 256 bytes")
		}
		text, err := d.text(raw)
		if err != nil {
			return nil, d.wrong(Invalid, userField, "has half a surrogate pair")
		}
		user = text
	case !isNumber(raw):
		return nil, d.wrong(Invalid, userField, "is neither a string nor an integer")
	case bytes.ContainsAny(raw, ".eE"):
		// 4.0 and 4 are the same number, but would be two members. Which one the producer means is unknown.
		return nil, d.wrong(Invalid, userField, "is a number that isn't written as an integer")
	}
	switch {
	case len(user) == 0:
		return nil, d.wrong(Invalid, userField, "is empty")
	case len(user) > maxUserBytes:
		return nil, d.wrong(Invalid, userField, "is longer than 256 bytes")
	}
	return user, nil
}

// readName returns the member's display name; nil if the event has none.
func (d *Decoder) readName() ([]byte, *Bad) {
	s := d.at[nameField]
	switch {
	case s.absent():
		return nil, nil
	case d.barred[nameField] != nil:
		return nil, d.noObject(Invalid, nameField)
	}
	raw := d.raw(s)
	if raw[0] != '"' {
		return nil, d.wrong(Invalid, nameField, "is not a string")
	}
	if len(raw) > longestEscaped(maxName*utf8.UTFMax) {
		return nil, d.wrong(Invalid, nameField, "is longer than 64 characters")
	}
	name, err := d.text(raw)
	switch {
	case err != nil:
		return nil, d.wrong(Invalid, nameField, "has half a surrogate pair")
	case len(name) == 0:
		return nil, d.wrong(Invalid, nameField, "is empty")
	case utf8.RuneCount(name) > maxName:
		return nil, d.wrong(Invalid, nameField, "is longer than 64 characters")
	}
	return name, nil
}

func (d *Decoder) readPoints() (int64, *Bad) {
	s := d.at[pointsField]
	switch {
	case s.absent():
		return 0, d.missing(Invalid, pointsField)
	case d.barred[pointsField] != nil:
		return 0, d.noObject(Invalid, pointsField)
	}
	raw := d.raw(s)
	if !isNumber(raw) {
		return 0, d.wrong(Invalid, pointsField, noNumber(raw))
	}
	points, fault := integer(raw, d.rules.MaxPoints)
	switch fault {
	case fractional:
		return 0, d.wrong(Invalid, pointsField, "is not an integer")
	case outOfRange:
		return 0, d.wrong(Invalid, pointsField, "is out of range")
	}
	return points, nil
}

func (d *Decoder) readBoards() ([][]byte, *Bad) {
	d.found = [maxBoards][]byte{} // do not keep an earlier value alive
	s := d.at[boardField]
	switch {
	case s.absent():
		return d.defaultBoards()
	case d.barred[boardField] != nil:
		return nil, d.noObject(UnknownBoard, boardField)
	}
	raw := d.raw(s)
	if raw[0] != '[' {
		name, wrong := d.boardName(raw)
		if wrong != "" {
			return nil, d.wrong(UnknownBoard, boardField, wrong)
		}
		d.found[0] = name
		return d.found[:1], nil
	}
	d.listSource = *bytes.NewBuffer(raw)
	d.list.Reset(&d.listSource, d.options...)
	_, _ = d.list.ReadToken() // the bracket: value is known to be JSON
	listed, distinct := 0, 0
	for ; d.list.PeekKind() != jsontext.KindEndArray; listed++ {
		if listed == maxBoards {
			return nil, d.wrong(UnknownBoard, boardField, "lists more than 8")
		}
		entry, err := d.list.ReadValue()
		if err != nil {
			return nil, d.wrong(UnknownBoard, boardField, "is not a list")
		}
		name, wrong := d.boardName(entry)
		if wrong != "" {
			end := s.start + int32(d.list.InputOffset())
			return nil, d.wrongAt(UnknownBoard, d.fields.labels[boardField], span{end - int32(len(entry)), end}, wrong)
		}
		if !contains(d.found[:distinct], name) {
			d.found[distinct] = name
			distinct++
		}
	}
	if listed == 0 {
		return nil, d.wrong(UnknownBoard, boardField, "lists none")
	}
	return d.found[:distinct], nil
}

var defaultBoardName = []byte(defaultBoard)

func (d *Decoder) defaultBoards() ([][]byte, *Bad) {
	if !d.allows(defaultBoardName) {
		return nil, &Bad{UnknownBoard, d.fields.labels[boardField] + " is missing, and " + defaultBoard + " is not among the configured boards"}
	}
	d.found[0] = defaultBoardName
	return d.found[:1], nil
}

// boardName returns the board name that a JSON value holds, or what is wrong with it.
func (d *Decoder) boardName(raw []byte) (name []byte, wrong string) {
	if raw[0] != '"' {
		return nil, "is not a name"
	}
	if len(raw) > longestEscaped(maxBoardBytes) {
		return nil, "is longer than 64 bytes"
	}
	name, err := d.text(raw)
	if err != nil || !isBoardName(name) {
		return nil, "is not a board's name"
	}
	if !d.allows(name) {
		return nil, "is not among the configured boards"
	}
	return name, ""
}

func (d *Decoder) allows(name []byte) bool {
	if d.boards == nil {
		return true
	}
	_, ok := d.boards[string(name)]
	return ok
}

// isBoardName reports whether a name matches [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
func isBoardName(name []byte) bool {
	if len(name) == 0 || len(name) > maxBoardBytes {
		return false
	}
	for i, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func contains(names [][]byte, name []byte) bool {
	for _, n := range names {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// readTime returns the data's own time, else the CloudEvent's, else the record's, in Unix ms.
func (d *Decoder) readTime(recordTime int64) (int64, *Bad) {
	s := d.at[occurredField]
	switch {
	case !s.absent() && d.barred[occurredField] != nil:
		return 0, d.noObject(BadTime, occurredField)
	case !s.absent():
		at, wrong := d.instant(d.raw(s))
		if wrong == "" {
			wrong = d.outside(at, recordTime)
		}
		if wrong != "" {
			return 0, d.wrong(BadTime, occurredField, wrong)
		}
		return at, nil
	case d.time.there():
		return d.attributeTime(recordTime)
	}
	return d.recordTime(recordTime)
}

func (d *Decoder) recordTime(at int64) (int64, *Bad) {
	switch {
	case at <= 0:
		return 0, &Bad{BadTime, d.fields.labels[occurredField] + " is missing, and the record has no time"}
	case at >= endOfTime:
		return 0, &Bad{BadTime, d.fields.labels[occurredField] + " is missing, and the record's time is past 2106-02-07T06:28:15Z"}
	}
	return at, nil
}

// instant returns the time of a JSON value in Unix ms, or what is wrong with it.
func (d *Decoder) instant(raw []byte) (at int64, wrong string) {
	switch {
	case raw[0] == '"':
		return d.timeText(raw)
	case isNumber(raw):
		return unixTime(raw)
	}
	return 0, "is neither a time by RFC 3339 nor Unix milliseconds"
}

// Numbers in this range are taken for Unix seconds, of 1973 to 2286. As milliseconds they are in the first
// months of 1970.
const (
	firstSeconds = 100_000_000
	endOfSeconds = 10_000_000_000
)

// unixTime returns the time of a number in Unix ms, or what is wrong with it.
func unixTime(number []byte) (at int64, wrong string) {
	at, fault := integer(number, math.MaxInt64)
	switch {
	case fault == fractional:
		wrong = "is not a whole number of milliseconds"
		if point := bytes.IndexByte(number, '.'); point >= 0 { // as Python's time.time() returns
			if seconds, _ := integer(number[:point], math.MaxInt64); isSeconds(seconds) {
				wrong += ", and looks like seconds"
			}
		}
	case isSeconds(at):
		wrong = "looks like seconds, and must be milliseconds"
	case fault == outOfRange || at >= endOfTime:
		wrong = "is out of range"
		if isSeconds(at / 1_000_000) {
			wrong += ", and looks like microseconds"
		} else if isSeconds(at / 1_000_000_000) {
			wrong += ", and looks like nanoseconds"
		}
	}
	return at, wrong
}

func isSeconds(n int64) bool { return n >= firstSeconds && n < endOfSeconds }

func (d *Decoder) timeText(quoted []byte) (at int64, wrong string) {
	text, err := d.text(quoted)
	if err != nil {
		return 0, "has half a surrogate pair"
	}
	at, ok := rfc3339(text)
	if !ok {
		return 0, noTime(quoted)
	}
	return at, ""
}

func noTime(quoted []byte) string {
	if quotedNumber(quoted) {
		return "is not a time by RFC 3339, but a number in quotes"
	}
	return "is not a time by RFC 3339"
}

// outside returns why an event cannot have this time; empty if it can.
func (d *Decoder) outside(at, recordTime int64) string {
	switch {
	case at < 0:
		return "is before 1970"
	case at >= endOfTime:
		return "is past 2106-02-07T06:28:15Z"
	case recordTime > 0 && at-recordTime > d.rules.MaxFuture:
		// Neither operand is negative, so the difference cannot overflow.
		return "is too far past the record's time"
	}
	return ""
}

func isNumber(raw []byte) bool { return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' }
