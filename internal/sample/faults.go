package sample

// The faults that an event can have: at least one for every reason that is visible in the event alone. Overflow is not,
// since it depends on a standing.

// The reasons of bad events, in the consumer's words.
const (
	malformed    = "malformed"
	invalid      = "invalid"
	unknownBoard = "unknown_board"
	badTime      = "bad_time"
)

// fault is one kind of bad event. append writes such an event of user.
type fault struct {
	reason, name string
	append       func(g *Generator, buf, user []byte) []byte
}

var faults = []fault{
	{malformed, "half of the JSON", func(g *Generator, buf, user []byte) []byte {
		start := len(buf)
		buf = g.appendGood(buf, user)
		return buf[:start+(len(buf)-start)/2]
	}},
	{malformed, "no object", literal(`["not","an","object"]`)},
	{malformed, "text", literal(`points for everyone`)},
	{malformed, "an empty value", literal(``)},
	{malformed, "two objects", func(g *Generator, buf, user []byte) []byte {
		return append(g.appendGood(buf, user), `{}`...)
	}},
	{malformed, "not UTF-8", func(g *Generator, buf, user []byte) []byte {
		return closed(append(g.appendHead(buf), ",\"user_id\":\"\xff\xfe\""...))
	}},
	{malformed, "a comma too many", func(g *Generator, buf, user []byte) []byte {
		return closed(append(appendUser(g.appendHead(buf), user), ',', ','))
	}},

	{invalid, "no user_id", without(`,"points":5`)},
	{invalid, "an empty user_id", without(`,"user_id":"","points":5`)},
	{invalid, "a user_id that is a fraction", without(`,"user_id":4.5,"points":5`)},
	{invalid, "a user_id that is an object", without(`,"user_id":{},"points":5`)},
	{invalid, "a user_id of 257 bytes", func(g *Generator, buf, user []byte) []byte {
		buf = append(g.appendHead(buf), `,"user_id":"`...)
		for range 257 {
			buf = append(buf, 'x')
		}
		return closed(append(buf, `","points":5`...))
	}},
	{invalid, "half a surrogate pair", without(`,"user_id":"\ud83d","points":5`)},
	{invalid, "no points", of(``)},
	{invalid, "points that are null", of(`,"points":null`)},
	{invalid, "points that are text", of(`,"points":"5"`)},
	{invalid, "points that are a fraction", of(`,"points":2.5`)},
	{invalid, "points of 2^63", of(`,"points":9223372036854775808`)},
	{invalid, "points of 1e300", of(`,"points":1e300`)},
	{invalid, "points and board both", of(`,"points":true,"board":[]`)},

	{unknownBoard, "a name with a space", of(`,"points":5,"board":"no such board"`)},
	{unknownBoard, "an empty name", of(`,"points":5,"board":""`)},
	{unknownBoard, "no board in the list", of(`,"points":5,"board":[]`)},
	{unknownBoard, "nine boards", of(`,"points":5,"board":["a","b","c","d","e","f","g","h","i"]`)},
	{unknownBoard, "a board and no board", of(`,"points":5,"board":["a","-"]`)},
	{unknownBoard, "board and time both", of(`,"points":5,"board":"a b","occurred_at":"soon"`)},

	{badTime, "a word", at(`"yesterday"`)},
	{badTime, "a day that doesn't exist", at(`"2026-02-30T12:00:00Z"`)},
	{badTime, "no zone", at(`"2026-11-21T08:15:30"`)},
	{badTime, "before 1970", at(`"1969-12-31T23:59:59.999Z"`)},
	{badTime, "negative milliseconds", at(`-1`)},
	{badTime, "far in the future", at(`"2105-01-01T00:00:00Z"`)},
	{badTime, "an object", at(`{}`)},
}

// closed ends an event without any other board or time: an event has only one fault unless the fault's name says
// otherwise.
func closed(buf []byte) []byte { return append(buf, '}') }

// literal returns a value that is not an event at all.
func literal(text string) func(*Generator, []byte, []byte) []byte {
	return func(_ *Generator, buf, _ []byte) []byte { return append(buf, text...) }
}

// without writes fields into an event that has no user_id.
func without(fields string) func(*Generator, []byte, []byte) []byte {
	return func(g *Generator, buf, _ []byte) []byte { return closed(append(g.appendHead(buf), fields...)) }
}

// of writes fields into an event of user.
func of(fields string) func(*Generator, []byte, []byte) []byte {
	return func(g *Generator, buf, user []byte) []byte {
		return closed(append(appendUser(g.appendHead(buf), user), fields...))
	}
}

// at writes an event that is good except for its time.
func at(time string) func(*Generator, []byte, []byte) []byte {
	return func(g *Generator, buf, user []byte) []byte {
		buf = g.appendPoints(appendUser(g.appendBoard(g.appendHead(buf)), user))
		return closed(append(append(buf, `,"occurred_at":`...), time...))
	}
}
