package v1

// How long browsers and proxies may reuse an answer without asking the API again. Most answers must be revalidated
// at each use. The rows of a final window do not change unless an operator reopens it (consumer reopen), or a
// member is banned, unbanned, erased or renamed. A cache shows none of these changes until its copy expires, so
// the time is bounded by finalMaxAge. For that long the answer is immutable (RFC 8246): browsers do not revalidate
// it even on a reload.

import (
	"fmt"

	"github.com/standings/standings/internal/reading"
)

// finalMaxAge is how long an answer about a final window may be cached: an hour, in seconds. Caches then serve
// nearly all reads of a popular page, and a reopening becomes visible within an hour.
const finalMaxAge = 3600

// keep sets the Cache-Control of an answer about a window: it may be cached if the window is final.
func (a *api) keep(q *request, v *reading.View, is *answer) *answer {
	is.cache = a.keeping(q, v)
	return is
}

// keeping returns the Cache-Control of an answer about a window as it was read. It is empty if caches must
// revalidate the answer at each use:
//
//   - the path names current or previous: the name will mean another window. A page read by cursor has the same
//     path, so this applies to it, too;
//   - with min_offset: the client repeats the request until the record counts;
//   - the window is not final on every shard, or may not be final any more: Redis is being refilled, or some
//     events are not counted yet.
func (a *api) keeping(q *request, v *reading.View) string {
	named := q.PathValue("window")
	switch {
	case named == reading.Current, named == reading.Previous, len(q.until) > 0:
		return ""
	case v.Revision < 1, len(v.Refilling) > 0 || v.CatchingUp():
		return ""
	case a.Tokens != nil: // a proxy must not serve it to its other clients; Vary names the token
		return fmt.Sprintf("private, max-age=%d, immutable", finalMaxAge)
	}
	return fmt.Sprintf("public, max-age=%d, immutable", finalMaxAge)
}
