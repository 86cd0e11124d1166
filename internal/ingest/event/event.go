// Package event reads the value of a record. The value is either an event that counts, or bad. A bad value has
// one reason, and a message that names the fault and its place.
//
//	{"event_id":"01J…","board":"global","user_id":"u42","points":25,
//	 "occurred_at":"2026-11-21T08:15:30.123Z"}
//
// | field | is | when absent or null |
// |---|---|---|
// | `user_id` | a string, or an integer taken as it is written; 1 to 256 bytes | `invalid` |
// | `points` | an integer by value (`25`, `25.0`, `1e3`), within ±max_points | `invalid` |
// | `board` | a name, or a list of 1 to 8 names | `global` |
// | a field of a board with another rule | an integer by value, within the field's range | `invalid` |
// | `name`, only if it has a path | a string of 1 to 64 characters | no name |
// | `occurred_at` | RFC 3339, truncated to milliseconds, or Unix milliseconds | the record's time |
//
// Field names are case-sensitive. If a field is repeated, the last value counts. Unknown fields are ignored, as
// long as the whole value is JSON. Fields may have other paths, also inside objects (Paths), and the event may
// be the data of a CloudEvent (Headers). An event's boards decide whether it needs points or other fields, so
// if boards have other rules, a fault in `board` comes before one in those fields. If there are several faults,
// the first in this table's order counts, and `user_id` comes before `points`:
//
// | reason | bad | for example |
// |---|---|---|
// | `malformed` | not JSON, not UTF-8, not an object, nested deeper than 10,000, over max_event_bytes, a CloudEvent that is not version 1.x with JSON data | `{"user_id":"u42"`, `[]`, an empty value, a byte order mark, two objects |
// | `invalid` | `user_id` or `points` missing, empty, of the wrong type, fractional, out of range, half a surrogate pair in the id, a name that is not a text of 1 to 64 characters | `"user_id":""`, `"user_id":4.0`, `"points":"5"`, `"points":1.5`, `"points":9223372036854775808` |
// | `unknown_board` | not a name, not a configured board, none or more than 8 in the list | `"board":"a b"`, `"board":7`, `"board":[]`, a list of nine, repeated ones counted |
// | `bad_time` | unreadable, Unix seconds (100,000,000 to 9,999,999,999), before 1970, from 2106-02-07T06:28:16Z on (no window holds it), more than max_future past the record's time, or missing if the record has no time | `"occurred_at":"yesterday"`, `1795248930`, `"2026-11-21 08:15:30Z"`, `"2026-02-29T00:00:00Z"`, `-1`, `1.5` |
// | `overflow` | it would take a standing past max_points, or a field past its range | decided when it is applied, never here |
// | `window_limit` | it would open a window beyond max_windows, or, on a board without windows, in the last tenth of max_windows | decided when it is applied, never here |
// | `too_large` | its record batch needs more memory than allowed | found before the value is read, never here |
package event

import boardrules "github.com/standings/standings/internal/rules"

// DeadLetterTopic returns the name of a topic's dead-letter topic.
func DeadLetterTopic(topic string) string { return topic + ".dlq" }

// Reason is the reason why an event is bad, in one word: the label of its counter and a header of its dead
// letter.
type Reason string

// The reasons, in the order in which Decode checks them.
const (
	Malformed    Reason = "malformed"
	Invalid      Reason = "invalid"
	UnknownBoard Reason = "unknown_board"
	BadTime      Reason = "bad_time"
	// Overflow never results from Decode: only Redis, which has the standing, can decide that an event would
	// take it past its range.
	Overflow Reason = "overflow"
	// WindowLimit never results from Decode: it depends on the number of windows in Redis.
	WindowLimit Reason = "window_limit"
	// TooLarge never results from Decode: it is for all records of a batch that needs too much memory.
	TooLarge Reason = "too_large"
)

// Reasons returns all reasons in their order, so that every counter can be 0 before the first bad event.
func Reasons() []Reason {
	return []Reason{Malformed, Invalid, UnknownBoard, BadTime, Overflow, WindowLimit, TooLarge}
}

func (r Reason) String() string { return string(r) }

// Bad is the reason why a value is not an event that counts. It is not an error: decoding succeeded, and found
// the value bad.
type Bad struct {
	Reason Reason
	// Message names the field, its byte offset in the value and the fault. It is one printable line of at most
	// 200 bytes, and quotes at most 48 bytes of the value, because logs and headers contain it.
	Message string
}

func (b *Bad) String() string { return string(b.Reason) + ": " + b.Message }

// Event is the part of a record's value that counts.
//
// User, Name and Boards are parts of the decoded value or of the decoder. They are valid until the next Decode,
// as long as the value is not overwritten.
type Event struct {
	User   []byte   // 1 to 256 bytes of UTF-8, NUL and spaces included
	Name   []byte   // 1 to 64 characters of UTF-8, of any kind; nil: none
	Points int64    // within ±Rules.MaxPoints
	Time   int64    // Unix ms in [0, 2^32 s): occurred_at, else the record's time
	Boards [][]byte // 1 to 8 distinct names, in the order of their first occurrence
	// Tuples has the event's tuple for each of Boards, in their order. It is nil if all boards have the default
	// rule, which counts Points. For a board with the default rule among others, the tuple is empty.
	Tuples []boardrules.Tuple
}

// Rules is the configuration of events. It is not checked here: package config checks it.
type Rules struct {
	MaxEventBytes int      // maximum size of a value, in bytes
	MaxPoints     int64    // maximum points of one event; the minimum is their negative
	MaxFuture     int64    // how far past the record's time occurred_at may be, in ms
	Boards        []string // the configured boards; none: any name
	Fields        *Fields  // the fields' paths; nil: their own names
	// Others are the boards with other rules than the default one. Fields has their fields.
	Others boardrules.Boards
}

// Limits that do not depend on the configuration.
const (
	maxUserBytes  = 256
	maxName       = 64 // characters
	maxBoards     = 8
	maxBoardBytes = 64
	defaultBoard  = "global"
	// endOfTime is 2106-02-07T06:28:16Z in Unix ms. The all-time window, the longest, ends there, so a later
	// event has no window on any board.
	endOfTime = int64(1) << 32 * 1000
)
