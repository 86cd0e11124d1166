package v1

// What is wrong with a request, by RFC 9457: a type that doesn't change, a status, and in words
// what was wrong, where, and what would be right.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/standings/standings/internal/reading"
)

// problem is the body of an answer that is no.
type problem struct {
	Type   string `json:"type"` // /v1/problems/<word>
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Parameter is which one of the request is wrong, if one is.
	Parameter string `json:"parameter,omitempty"`
	// There is what there is in place of what was asked for, at most ten of it.
	There []string `json:"there,omitempty"`

	word       string // of the type
	retryAfter int    // seconds; 0 for none
}

func (p *problem) Error() string { return p.Detail }

// Words of problems, each with its status and title. They don't change.
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

var titles = map[string]struct {
	status int
	title  string
}{
	badRequest:   {http.StatusBadRequest, "The request isn't one"},
	unauthorized: {http.StatusUnauthorized, "A bearer token is needed"},
	notFound:     {http.StatusNotFound, "There is no such thing"},
	notAllowed:   {http.StatusMethodNotAllowed, "The method isn't one of this path"},
	erased:       {http.StatusConflict, "The member is erased, which is for good"},
	tooLarge:     {http.StatusRequestEntityTooLarge, "The request is too large"},
	bodyTooSlow:  {http.StatusRequestTimeout, "The body of the request came too slowly"},
	tooMany:      {http.StatusTooManyRequests, "Too many requests at a time by one client"},
	internal:     {http.StatusInternalServerError, "The server has failed"},
	boardLost:    {http.StatusServiceUnavailable, "Redis has lost the board"},
	overloaded:   {http.StatusServiceUnavailable, "Too many requests at a time"},
	unavailable:  {http.StatusServiceUnavailable, "Redis can't be read"},
	noBans:       {http.StatusServiceUnavailable, "The bans topic can't be read or written"},
	tooSlow:      {http.StatusGatewayTimeout, "Redis was too slow"},
	noArchive:    {http.StatusServiceUnavailable, "The archive can't be read"},
}

// problemf is a problem of a kind.
func problemf(word, format string, args ...any) *problem {
	of := titles[word]
	return &problem{Type: "/v1/problems/" + word, Title: of.title, Status: of.status, Detail: fmt.Sprintf(format, args...), word: word}
}

// wrong is a parameter that isn't right.
func wrong(parameter, format string, args ...any) *problem {
	p := problemf(badRequest, "%s: %s", parameter, fmt.Sprintf(format, args...))
	p.Parameter = parameter
	return p
}

// comeAgain is after how many seconds a problem that passes may be gone.
const comeAgain = 1

// later is a problem that passes.
func (p *problem) later() *problem {
	p.retryAfter = comeAgain
	return p
}

const mostThere = 10

// problemOf says what an error is for whoever asked. What Redis or the network said of itself goes
// to the log and not to them.
func problemOf(err error) *problem {
	var p *problem
	var missing *reading.NotFoundError
	var away *reading.ArchiveError
	var other *reading.OtherRuleError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &missing):
		p := problemf(notFound, "%s", missing.Error())
		p.Parameter, p.There = missing.What, missing.There[:min(mostThere, len(missing.There))]
		return p
	case errors.As(err, &other):
		return problemf(badRequest, "%s: this can't be asked of that window", other.Error())
	case errors.Is(err, reading.ErrArchiveBusy):
		return problemf(noArchive, "Redis doesn't have the window, and the archive has as many readers as it may have").later()
	case errors.As(err, &away):
		return problemf(noArchive, "Redis doesn't have the window, and the archive can't be read; the server's log says why").later()
	case errors.Is(err, context.DeadlineExceeded):
		return problemf(tooSlow, "Redis didn't answer in time").later()
	}
	return problemf(unavailable, "Redis can't be read; the server's log says why").later()
}

// write answers with the problem.
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
	_ = text.Encode(p) // whoever asked may be gone
}
