package v1

// Problem details of RFC 9457: a stable type, a status, and a description of what is wrong and
// what would be valid.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/standings/standings/internal/reading"
)

// problem is the body of an error response.
type problem struct {
	Type   string `json:"type"` // /v1/problems/<word>
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Parameter is the invalid parameter, if there is one.
	Parameter string `json:"parameter,omitempty"`
	// There holds up to ten valid values.
	There []string `json:"there,omitempty"`

	word       string // the type's last segment
	retryAfter int    // seconds; 0 for none
}

func (p *problem) Error() string { return p.Detail }

// Types of problems. They are stable.
const (
	badRequest   = "bad-request"
	unauthorized = "unauthorized"
	notFound     = "not-found"
	notAllowed   = "method-not-allowed"
	erased       = "erased"
	tooLarge     = "request-too-large"
	bodyTooSlow  = "body-too-slow"
	tooMany      = "too-many-requests"
	boardLost    = "board-lost"
	internal     = "internal"
	overloaded   = "overloaded"
	unavailable  = "unavailable"
	noBans       = "bans-unavailable"
	tooSlow      = "too-slow"
	noArchive    = "archive-unavailable"
)

var statuses = map[string]int{
	badRequest:   http.StatusBadRequest,
	unauthorized: http.StatusUnauthorized,
	notFound:     http.StatusNotFound,
	notAllowed:   http.StatusMethodNotAllowed,
	erased:       http.StatusConflict,
	tooLarge:     http.StatusRequestEntityTooLarge,
	bodyTooSlow:  http.StatusRequestTimeout,
	tooMany:      http.StatusTooManyRequests,
	internal:     http.StatusInternalServerError,
	boardLost:    http.StatusServiceUnavailable,
	overloaded:   http.StatusServiceUnavailable,
	unavailable:  http.StatusServiceUnavailable,
	noBans:       http.StatusServiceUnavailable,
	tooSlow:      http.StatusGatewayTimeout,
	noArchive:    http.StatusServiceUnavailable,
}

// problemf returns a problem of a type.
func problemf(word, format string, args ...any) *problem {
	status := statuses[word]
	return &problem{Type: "/v1/problems/" + word, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...), word: word}
}

// wrong returns the problem of an invalid parameter.
func wrong(parameter, format string, args ...any) *problem {
	p := problemf(badRequest, format, args...)
	p.Parameter = parameter
	return p
}

// comeAgain is the Retry-After of a temporary problem, in seconds.
const comeAgain = 1

// later marks a problem as temporary.
func (p *problem) later() *problem {
	p.retryAfter = comeAgain
	return p
}

const mostThere = 10

// problemOf translates an error for the client. Errors of Redis and the network are only logged.
func problemOf(err error) *problem {
	var p *problem
	var missing *reading.NotFoundError
	var away *reading.ArchiveError
	var other *reading.OtherRuleError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &missing):
		p := problemf(notFound, "%s", missing.Sentences())
		p.Parameter, p.There = missing.What, missing.There[:min(mostThere, len(missing.There))]
		return p
	case errors.As(err, &other):
		return problemf(badRequest, "The request does not fit the rule of that window: %s", other.Error())
	case errors.Is(err, reading.ErrArchiveBusy):
		return problemf(noArchive, "The window is in the archive, which has too many concurrent readers").later()
	case errors.As(err, &away):
		return problemf(noArchive, "The window is in the archive, which cannot be read. The server's log has the cause").later()
	case errors.Is(err, context.DeadlineExceeded):
		return problemf(tooSlow, "Redis did not reply in time").later()
	}
	return problemf(unavailable, "Redis cannot be read. The server's log has the cause").later()
}

// write sends the problem as the response.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="standings"`)
	}
	w.WriteHeader(p.Status)
	text := json.NewEncoder(w)
	text.SetEscapeHTML(false)
	_ = text.Encode(p) // the client may have disconnected
}
