package oracle

// Valid and bad events, as the README specifies them.

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Reasons of bad events.
const (
	Malformed    = "malformed"
	Invalid      = "invalid"
	UnknownBoard = "unknown_board"
	BadTime      = "bad_time"
	Overflow     = "overflow"
)

type event struct {
	user   string
	name   string
	boards []string
	values []tuple // per board, the values that it counts
	time   int64   // Unix ms
}

// endOfTime is 2^32 s, the end of the all-time window, in ms.
const endOfTime = int64(1) << 32 * 1000

var boardName = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\z`)

// judge reads a record. The first fault in the order of the table counts. id is the event's id, "" if it has
// none that is readable.
func (c Config) judge(r Record) (e event, id, reason string) {
	p, ok := c.open(r)
	if attributed, ok := userID(p.id); ok {
		id = attributed
	}
	if !ok {
		return e, id, Malformed
	}
	fields, ok := c.document(p.event)
	if !ok {
		return e, id, Malformed
	}
	if own, ok := userID(c.field(fields, "event_id")); ok {
		id = own
	}
	if e.user, ok = userID(c.field(fields, "user_id")); !ok {
		return e, id, Invalid
	}
	if called := c.field(fields, "name"); c.Names && called != nil {
		if e.name, ok = text(called); !ok || e.name == "" || utf8.RuneCountInString(e.name) > 64 {
			return e, id, Invalid
		}
	}
	if _, ok := integer(c.field(fields, "points"), c.MaxPoints); !ok && !c.ruled() {
		return e, id, Invalid
	}
	// With rules, the rules decide which fields an event needs.
	if e.boards, ok = c.boards(c.field(fields, "board")); !ok {
		return e, id, UnknownBoard
	}
	if e.values, ok = c.values(e.boards, fields); !ok {
		return e, id, Invalid
	}
	occurred := c.field(fields, "occurred_at")
	if occurred == nil && p.time != nil {
		// A CloudEvent's time is text, never a number.
		if occurred = p.time; occurred[0] != '"' {
			return e, id, BadTime
		}
	}
	if e.time, ok = c.time(occurred, r.Time); !ok {
		return e, id, BadTime
	}
	return e, id, ""
}

// values returns the values of the fields that each board counts, or false if one is missing.
func (c Config) values(boards []string, fields object) (all []tuple, ok bool) {
	for _, name := range boards {
		b := c.rule(name)
		values := tuple{}
		for i, f := range b.Fields {
			value, ok := integer(c.field(fields, f.Name), f.Max)
			if !ok || !b.takes(f, value) {
				return nil, false
			}
			values[i] = value
		}
		all = append(all, values)
	}
	return all, true
}

func userID(raw json.RawMessage) (string, bool) {
	id, ok := text(raw)
	if !ok && isNumber(raw) && !bytes.ContainsAny(raw, ".eE") {
		id, ok = string(raw), true // an integer is taken as written
	}
	return id, ok && len(id) >= 1 && len(id) <= 256
}

// integer parses a number that is an integer by value and within ±most.
func integer(raw json.RawMessage, most int64) (int64, bool) {
	if !isNumber(raw) {
		return 0, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(raw)), "e")
	if !strings.ContainsAny(mantissa, "123456789") {
		return 0, true
	}
	// math/big would expand 1e999999999. No mantissa is long enough to compensate for an exponent of more than
	// five digits, except a mantissa of zeros.
	if e := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0"); len(e) > 5 {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(string(raw))
	if !ok || !n.IsInt() || n.Num().CmpAbs(big.NewInt(most)) > 0 {
		return 0, false
	}
	return n.Num().Int64(), true
}

func (c Config) boards(raw json.RawMessage) ([]string, bool) {
	if raw == nil {
		return []string{"global"}, c.allows("global")
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		if json.Unmarshal(raw, &list) != nil || len(list) < 1 || len(list) > 8 {
			return nil, false
		}
	}
	var names []string
	seen := map[string]bool{}
	for _, entry := range list {
		name, ok := text(entry)
		if !ok || !boardName.MatchString(name) || !c.allows(name) {
			return nil, false
		}
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names, true
}

func (c Config) allows(name string) bool {
	for _, b := range c.Boards {
		if b == name {
			return true
		}
	}
	return len(c.Boards) == 0
}

func (c Config) time(raw json.RawMessage, recordTime int64) (int64, bool) {
	at := recordTime
	if raw == nil {
		return at, at > 0 && at < endOfTime
	}
	if s, ok := text(raw); ok {
		if at, ok = instant(s); !ok {
			return 0, false
		}
	} else if at, ok = integer(raw, endOfTime); !ok || at >= 1e8 && at < 1e10 { // seconds
		return 0, false
	}
	return at, at >= 0 && at < endOfTime && (recordTime <= 0 || at <= recordTime+c.MaxFuture.Milliseconds())
}

var rfc3339 = regexp.MustCompile(`\A(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))\z`)

// instant parses RFC 3339 and truncates it to milliseconds.
func instant(s string) (ms int64, ok bool) {
	const usual = "2006-01-02T15:04:05.000Z"
	if len(s) == len(usual) && s[10] == 'T' && s[19] == '.' && s[23] == 'Z' {
		if t, err := time.Parse(usual, s); err == nil {
			return t.UnixMilli(), true
		}
	}
	m := rfc3339.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(m[i])
		return v
	}
	year, month, day, hour, minute, second := n(1), time.Month(n(2)), n(3), n(4), n(5), n(6)
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if date.Month() != month || date.Day() != day || hour > 23 || minute > 59 || second > 60 || n(9) > 23 || n(10) > 59 {
		return 0, false
	}
	offset := time.Duration(n(9))*time.Hour + time.Duration(n(10))*time.Minute
	if m[8] == "-" {
		offset = -offset
	}
	t := time.Date(year, month, day, hour, minute, second, 0, time.UTC).Add(-offset)
	// A leap second is the last second of a month in UTC.
	if second == 60 && (t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0) {
		return 0, false
	}
	milli, _ := strconv.Atoi((m[7] + "000")[:3])
	return t.UnixMilli() + int64(milli), true
}

func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// text decodes a JSON string. It rejects half a surrogate pair, which encoding/json would turn into a
// replacement character.
func text(raw json.RawMessage) (string, bool) {
	s := ""
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil || halfPair(string(raw)) {
		return "", false
	}
	return s, true
}

var (
	escape = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}|\\.`)
	high   = regexp.MustCompile(`\A\\u[Dd][89ABab]`)
	low    = regexp.MustCompile(`\A\\u[Dd][C-Fc-f]`)
)

func halfPair(quoted string) bool {
	if !strings.Contains(quoted, `\u`) {
		return false
	}
	end := -1 // of a high half that waits for its low half
	for _, at := range escape.FindAllStringIndex(quoted, -1) {
		e := quoted[at[0]:at[1]]
		waits := end >= 0
		switch {
		case low.MatchString(e):
			if !waits || at[0] != end {
				return true
			}
			end = -1
		case waits:
			return true
		case high.MatchString(e):
			end = at[1]
		}
	}
	return end >= 0
}
