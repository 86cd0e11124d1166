package sample

import "strings"

// The faults that an event can have: at least one for every reason that is visible in the event alone. Overflow is not,
// since it depends on a standing.

// The reasons of bad events, in the consumer's words.
const (
	malformed    = "malformed"
	invalid      = "invalid"
	unknownBoard = "unknown_board"
	badTime      = "bad_time"
)

// faults are bad events. In them HEAD is the beginning of an event with its id and board, and USER a user_id. A board
// that follows replaces that of HEAD.
var faults = []struct{ reason, value string }{
	{malformed, ``},
	{malformed, `["not","an","object"]`},
	{malformed, `points for everyone`},
	{malformed, `HEAD,USER,"poi`},
	{malformed, `HEAD,USER,"points":5}{}`},
	{malformed, `HEAD,USER,,}`},
	{malformed, "HEAD,\"points\":5,\"user_id\":\"\xff\xfe\"}"},

	{invalid, `HEAD,"points":5}`},
	{invalid, `HEAD,"points":5,"user_id":""}`},
	{invalid, `HEAD,"points":5,"user_id":4.5}`},
	{invalid, `HEAD,"points":5,"user_id":{}}`},
	{invalid, `HEAD,"points":5,"user_id":"` + strings.Repeat("x", 257) + `"}`},
	{invalid, `HEAD,"points":5,"user_id":"\ud83d"}`},
	{invalid, `HEAD,USER}`},
	{invalid, `HEAD,USER,"points":null}`},
	{invalid, `HEAD,USER,"points":"5"}`},
	{invalid, `HEAD,USER,"points":2.5}`},
	{invalid, `HEAD,USER,"points":9223372036854775808}`},
	{invalid, `HEAD,USER,"points":1e300}`},
	{invalid, `HEAD,USER,"points":true,"board":[]}`},

	{unknownBoard, `HEAD,USER,"points":5,"board":"no such board"}`},
	{unknownBoard, `HEAD,USER,"points":5,"board":""}`},
	{unknownBoard, `HEAD,USER,"points":5,"board":[]}`},
	{unknownBoard, `HEAD,USER,"points":5,"board":["a","b","c","d","e","f","g","h","i"]}`},
	{unknownBoard, `HEAD,USER,"points":5,"board":["a","-"]}`},
	{unknownBoard, `HEAD,USER,"points":5,"board":"a b","occurred_at":"soon"}`},

	{badTime, `HEAD,USER,"points":5,"occurred_at":"yesterday"}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":"2026-02-30T12:00:00Z"}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":"2026-11-21T08:15:30"}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":"1969-12-31T23:59:59.999Z"}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":-1}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":"2105-01-01T00:00:00Z"}`},
	{badTime, `HEAD,USER,"points":5,"occurred_at":{}}`},
}

// appendFault appends a bad event of user.
func (g *Generator) appendFault(buf, user []byte, value string) []byte {
	head, user := g.appendHead(nil), appendUser(nil, user)
	return append(buf, strings.NewReplacer("HEAD", string(head), ",USER", string(user)).Replace(value)...)
}
