// Package event reads the value of a record: either it is an event that counts,
// or it is bad, and then there is one reason for it and a message that names
// what was wrong and where.
//
//	{"event_id":"01J…","board":"global","user_id":"u42","points":25,
//	 "occurred_at":"2026-11-21T08:15:30.123Z"}
//
// | field | is | when absent or null |
// |---|---|---|
// | `user_id` | a string, or an integer taken as it is written; 1 to 256 bytes | `invalid` |
// | `points` | an integer by value (`25`, `25.0`, `1e3`), within ±max_points | `invalid` |
// | `board` | a name, or a list of 1 to 8 names | `global` |
// | a field of a board by another rule | an integer by value, within the field's range | `invalid` |
// | `name`, by a path alone | a string of 1 to 64 characters | no name |
// | `occurred_at` | RFC 3339, cut to milliseconds, or Unix milliseconds | the record's time |
//
// Names of fields are case-sensitive, of a repeated one the last counts, and
// unknown ones are ignored, as long as the whole is JSON. Fields may stand
// elsewhere, also inside of objects (Paths), and the event may be the data of a
// CloudEvent (Headers). What an event needs of points and other fields follows from its
// boards, so where boards have other rules, a fault in `board` comes before one in those.
// Of several faults the first in this table's order counts,
// and `user_id` before `points`:
//
// | reason | bad | for example |
// |---|---|---|
// | `malformed` | not JSON, not UTF-8, not an object, nested deeper than 10,000, over max_event_bytes, a CloudEvent that isn't one of 1.x with JSON for data | `{"user_id":"u42"`, `[]`, nothing at all, a byte order mark, two objects |
// | `invalid` | `user_id` or `points` missing, empty, of the wrong type, fractional, out of range, half a surrogate pair in the id, a name that is no text of 1 to 64 characters | `"user_id":""`, `"user_id":4.0`, `"points":"5"`, `"points":1.5`, `"points":9223372036854775808` |
// | `unknown_board` | not a name, not a configured board, none or more than 8 in the list | `"board":"a b"`, `"board":7`, `"board":[]`, a list of nine, repeated ones counted |
// | `bad_time` | unreadable, Unix seconds (100,000,000 to 9,999,999,999), before 1970, from 2106-02-07T06:28:16Z on (no window holds it), more than max_future past the record's time, or missing where the record has none | `"occurred_at":"yesterday"`, `1795248930`, `"2026-11-21 08:15:30Z"`, `"2026-02-29T00:00:00Z"`, `-1`, `1.5` |
// | `overflow` | it would take a standing past max_points, or a field past its range | judged when it is applied, never here |
// | `window_limit` | it would open a window beyond max_windows, or, on a board that has none, in its last tenth | judged when it is applied, never here |
// | `too_large` | its record batch takes more memory than is allowed | found before the value is, never here |
package event

import boardrules "github.com/standings/standings/internal/rules"

// DeadLetterTopic is where the bad events of a topic go.
func DeadLetterTopic(topic string) string { return topic + ".dlq" }

// Reason says in one word why an event is bad: the label of its counter and the
// header of its dead letter.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Malformed    Reason = "malformed"
	Invalid      Reason = "invalid"
	UnknownBoard Reason = "unknown_board"
	BadTime      Reason = "bad_time"
	// Overflow is never found by Decode: only where the standing is known can it
	// be said that an event would take it past its range.
	Overflow Reason = "overflow"
	// WindowLimit isn't, either: it takes the number of windows that there are.
	WindowLimit Reason = "window_limit"
	// TooLarge isn't, either: it is for all records of a batch that takes too much memory.
	TooLarge Reason = "too_large"
)

// Reasons lists all of them in their order, so that every counter can stand at
// zero before the first bad event.
func Reasons() []Reason {
	return []Reason{Malformed, Invalid, UnknownBoard, BadTime, Overflow, WindowLimit, TooLarge}
}

func (r Reason) String() string { return string(r) }

// Bad is why a value is not an event that counts. It is no error: it is what
// decoding a value came to, and nothing has failed.
type Bad struct {
	Reason Reason
	// Message names the field, its byte offset in the value and what was wrong.
	// It is one printable line of at most 200 bytes, and quotes no more than 48
	// bytes of the value: it goes into logs and headers.
	Message string
}

func (b *Bad) String() string { return string(b.Reason) + ": " + b.Message }

// Event is what counts of a record's value.
//
// User, Name and Boards lie in the decoded value or in the decoder: they hold until
// the next Decode, and only while the value isn't written to.
type Event struct {
	User   []byte   // 1 to 256 bytes of UTF-8, NUL and spaces included
	Name   []byte   // 1 to 64 characters of UTF-8, of any kind; nil: none
	Points int64    // within ±Rules.MaxPoints
	Time   int64    // Unix ms in [0, 2^32 s): occurred_at, else the record's time
	Boards [][]byte // 1 to 8 distinct names, in the order of their first appearance
	// Tuples are what the event has for each of Boards, in their order: nil where all of them
	// are by the default rule, which counts Points. Of such a board among others it is none.
	Tuples []boardrules.Tuple
}

// Rules is what the configuration says of events. It is taken as it is: whoever
// reads the configuration checks it.
type Rules struct {
	MaxEventBytes int      // longest value, in bytes
	MaxPoints     int64    // largest points of one event, and their negative
	MaxFuture     int64    // how far past the record's time occurred_at may lie, in ms
	Boards        []string // the boards there are; none: any name
	Fields        *Fields  // where the fields stand; nil: by their own names
	// Others are the boards that aren't by the default rule. Their fields are among Fields.
	Others boardrules.Boards
}

// What a producer can rely on, whatever the configuration.
const (
	maxUserBytes  = 256
	maxName       = 64 // characters
	maxBoards     = 8
	maxBoardBytes = 64
	defaultBoard  = "global"
	// endOfTime is 2106-02-07T06:28:16Z in Unix ms. The all-time window, the
	// longest, ends there, so a later event has no window on any board.
	endOfTime = int64(1) << 32 * 1000
)
