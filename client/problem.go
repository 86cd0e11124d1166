package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is the reason why the API refused a request (RFC 9457).
type Problem struct { //nolint:errname // it is RFC 9457's name
	// Type identifies the kind of problem; its last segment is [Problem.Word]. It is about:blank if another
	// server, such as a proxy, sent the response.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail describes the error and the valid values.
	Detail string `json:"detail"`
	// Parameter is the name of the invalid parameter, if there is one.
	Parameter string `json:"parameter"`
	// There has up to ten valid values, such as existing boards if the board is unknown.
	There []string `json:"there"`
	// RetryAfter is the time after which to try again; 0 if the API gives none.
	RetryAfter time.Duration `json:"-"`
}

// Word returns the kind of problem, such as not-found, bad-request or board-lost. It is empty if another server
// sent the response.
func (p *Problem) Word() string {
	word, ok := strings.CutPrefix(p.Type, "/v1/problems/")
	if !ok {
		return ""
	}
	return word
}

// Error returns the status and the description.
func (p *Problem) Error() string {
	said := p.Detail
	if said == "" {
		said = p.Title
	}
	return fmt.Sprintf("%d: %s", p.Status, said)
}

// passes reports whether the same request may succeed later.
func (p *Problem) passes() bool {
	return p.RetryAfter > 0 && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable)
}

// problemOf reads the problem from a response. If another server sent the response, such as a proxy, only the
// status is used.
func problemOf(answer *http.Response) *Problem {
	p := &Problem{}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(kind) == "application/problem+json" {
		if err := json.NewDecoder(io.LimitReader(answer.Body, mostProblemBytes)).Decode(p); err != nil {
			p = &Problem{}
		}
	}
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(answer.StatusCode)
	}
	p.Status, p.RetryAfter = answer.StatusCode, retryAfter(answer.Header.Get("Retry-After"))
	return p
}

// retryAfter parses a Retry-After header: seconds, or a time. The result is at most 24 hours.
func retryAfter(text string) time.Duration {
	const most = 24 * time.Hour
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int64(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), most)
	}
	return 0
}
