package v1

// Request parameters. Each parameter is validated. Unknown parameters are refused, so that a misspelt name is not
// silently ignored.

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/reading"
)

// request is an HTTP request with its parsed parameters.
type request struct {
	*http.Request
	ctx   context.Context //nolint:containedctx // the request's, with its deadline
	query url.Values
	until []reading.Offset
	wait  time.Duration // maximum time to wait for until, or for a ban to be applied
	// holder is the name of the request's token; empty if none is required.
	holder string
	// client is the token's holder, or an address.
	client string
	sent   []byte // the body
	err    error  // of the first invalid parameter
}

func (q *request) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// head reports whether the request is a HEAD request.
func (q *request) head() bool { return q.Method == http.MethodHead }

// untilParameters are the parameters of reads that can wait for an event.
var untilParameters = []string{"min_offset", "wait_ms"}

const (
	mostOffsets = 16
	longestWait = 10 * time.Second
	usualWait   = time.Second
	longestID   = 256 // bytes, of a member id
)

func newRequest(r *http.Request, o *operation, client string) (*request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problemf(badRequest, "Invalid query: %v", err)
	}
	for name, values := range query {
		if !slices.Contains(o.parameters, name) {
			return nil, wrong(name, "Unknown parameter %s. %s takes %s", quoted(name), o.path, cmp.Or(strings.Join(o.parameters, ", "), "none"))
		}
		if len(values) > 1 && name != "min_offset" {
			return nil, wrong(name, "%s is given %d times", name, len(values))
		}
	}
	q := &request{Request: r, ctx: r.Context(), query: query, client: client}
	if len(query["min_offset"]) > mostOffsets {
		return nil, wrong("min_offset", "min_offset is given %d times. The maximum is %d", len(query["min_offset"]), mostOffsets)
	}
	for _, text := range query["min_offset"] {
		o, err := reading.ParseOffset(text)
		if err != nil {
			return nil, wrong("min_offset", "min_offset must be topic/partition@offset, such as points/3@48211, not %s", quoted(text))
		}
		q.until = append(q.until, o)
	}
	ms := q.number("wait_ms", usualWait.Milliseconds(), 0, longestWait.Milliseconds())
	if len(q.until) > 0 || o.bans && slices.Contains(o.parameters, "wait_ms") {
		q.wait = time.Duration(ms) * time.Millisecond
	}
	return q, q.err
}

// number reads a whole number within a range, or returns usual if the parameter is missing or wrong.
func (q *request) number(name string, usual, least, most int64) int64 {
	if !q.query.Has(name) {
		return usual
	}
	text := q.query.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fail(wrong(name, "%s must be a whole number from %d to %d, not %s", name, least, most, quoted(text)))
		return usual
	}
	return n
}

// choice reads one of some words, or returns the first word if the parameter is missing or wrong.
func (q *request) choice(name string, words ...string) string {
	text := q.query.Get(name)
	switch {
	case slices.Contains(words, text):
		return text
	case q.query.Has(name):
		q.fail(wrong(name, "%s must be one of %s, not %s", name, strings.Join(words, ", "), quoted(text)))
	}
	return words[0]
}

// list reads a comma-separated list; nil if the parameter is missing or empty.
func (q *request) list(name string) []string {
	if q.query.Get(name) == "" {
		return nil
	}
	return strings.Split(q.query.Get(name), ",")
}

// checkMember validates a member id.
func checkMember(parameter, id string) error {
	if len(id) < 1 || len(id) > longestID {
		return wrong(parameter, "A member id must have 1 to %d bytes, not %d", longestID, len(id))
	}
	return nil
}

// member validates the parameter member.
func (q *request) member(id string) string {
	if err := checkMember("member", id); err != nil {
		q.fail(err)
	}
	return id
}

// waited is the result of waiting for records.
type waited struct {
	until []reading.Offset
	ok    bool
}

// target returns the window that the path names, after it has waited for the events in min_offset. If a parameter
// is invalid, that is the error.
func (q *request) target(a *api) (t reading.Target, reached *waited, err error) {
	if q.err != nil {
		return t, nil, q.err
	}
	if len(q.until) > 0 {
		ok, err := a.Reader.Reached(q.ctx, q.until, q.wait)
		if err != nil {
			return t, nil, err
		}
		reached = &waited{q.until, ok}
	}
	t, err = a.Reader.Target(q.ctx, q.PathValue("board"), q.PathValue("period"), q.PathValue("window"))
	return t, reached, err
}

// quoted returns a text for a message: quoted, escaped and at most 64 bytes of it.
func quoted(text string) string {
	const most = 64
	if len(text) > most {
		return fmt.Sprintf("%+q…", text[:most])
	}
	return fmt.Sprintf("%+q", text)
}
