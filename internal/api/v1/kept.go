package v1

// How long a browser or a proxy may show an answer without asking again: for the most part not at
// all. A final window's rows don't change, unless its seal is taken back (consumer reopen), a member
// is banned, unbanned or erased, or gets another name: whoever keeps the answer sees none of these
// until its time is over. So the time is bounded: finalMaxAge. For so long the answer is immutable (RFC
// 8246): not even a reload asks again.

import (
	"fmt"

	"github.com/standings/standings/internal/reading"
)

// finalMaxAge is how long an answer about a final window may be kept, in seconds: an hour. A page that is
// read often is read from caches for most of its life, and a reopening shows within an hour.
const finalMaxAge = 3600

// keep lets an answer be kept where it is about a final window.
func (a *api) keep(q *request, v *reading.View, is *answer) *answer {
	is.cache = a.keeping(q, v)
	return is
}

// keeping is Cache-Control of an answer about a window as it was read; empty where it is to be asked
// for each time:
//
//   - by current or previous: another window takes the name, and a page that goes on by after is
//     held to its path alike;
//   - with min_offset: whoever waits for a record asks until it counts;
//   - where the window isn't final on every shard, or may not be final any more: Redis is being filled
//     again, or events are not counted yet.
func (a *api) keeping(q *request, v *reading.View) string {
	state := v.State()
	named := q.PathValue("window")
	switch {
	case named == reading.Current, named == reading.Previous, len(q.until) > 0:
		return ""
	case v.Revision < 1, state != reading.Whole && state != reading.Incomplete:
		return ""
	case a.Tokens != nil: // for a proxy's other clients it isn't; Vary has the token
		return fmt.Sprintf("private, max-age=%d, immutable", finalMaxAge)
	}
	return fmt.Sprintf("public, max-age=%d, immutable", finalMaxAge)
}
