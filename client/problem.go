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

// Problem is why a request was refused, by RFC 9457.
type Problem struct { //nolint:errname // it is RFC 9457's name
	// Type ends with a word that doesn't change, by [Problem.Word]; about:blank where it wasn't the
	// API that answered.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is what was wrong, where, and what would be right.
	Detail string `json:"detail"`
	// Parameter is which one is wrong, if one is.
	Parameter string `json:"parameter"`
	// There is what there is in place of what was asked for, at most ten of it.
	There []string `json:"there"`
	// RetryAfter is after how long it may be gone; 0 where that isn't known.
	RetryAfter time.Duration `json:"-"`
}

// Word is what kind of problem it is: not-found, bad-request, board-lost, …
func (p *Problem) Word() string {
	word, ok := strings.CutPrefix(p.Type, "/v1/problems/")
	if !ok {
		return ""
	}
	return word
}

// Error is the status, and what was wrong.
func (p *Problem) Error() string {
	said := p.Detail
	if said == "" {
		said = p.Title
	}
	return fmt.Sprintf("%d: %s", p.Status, said)
}

// passes reports whether the same request may be answered later.
func (p *Problem) passes() bool {
	return p.RetryAfter > 0 && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable)
}

// problemOf reads the problem that an answer is. Of what something else has answered, such as a
// proxy, the status is all that is taken.
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

// retryAfter reads seconds, or a time.
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
