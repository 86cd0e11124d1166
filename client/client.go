// Package client reads leaderboards from the HTTP API of standings (docs/api.md).
//
//	c, err := client.New(client.Config{BaseURL: "http://localhost:8090", Token: token})
//	page, err := c.Standings(ctx, client.Ref{Board: "global", Period: "weekly"}, client.Query{Limit: 10})
//
// Every answer about a window has a [Status], which states the time of the read and whether the window is complete.
// If the API refuses a request, the error wraps a [*Problem], which errors.As finds. The client repeats a request
// that was refused temporarily (status 429 or 503 with a Retry-After header) until it succeeds or the context
// ends. It repeats no other request.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Config is the configuration of a Client.
type Config struct {
	// BaseURL is the URL of the API without /v1, such as https://boards.example. It may have a path.
	BaseURL string
	// Token is the bearer token; empty if the API requires none.
	Token string
	// HTTP sends the requests. If it is nil, a default client waits at most 30 s for the start of a response, and
	// for its end until the context ends.
	HTTP *http.Client
}

// Client reads an API. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	// until has the records that reads of a window wait for, and wait is the maximum time.
	until []Record
	wait  time.Duration
}

const (
	answerBegins = 30 * time.Second
	// mostBytes is the maximum size of a response, in bytes. A thousand rows with the longest ids and the most
	// fields need less than half of it.
	mostBytes        = 16 << 20
	mostProblemBytes = 64 << 10
)

// New returns a client. It sends no request.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // drop the URL, which may contain a password
	}
	if err != nil {
		return nil, fmt.Errorf("client: BaseURL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("client: invalid BaseURL %q: must be like https://boards.example", u.Redacted())
	}
	made := &Client{base: strings.TrimSuffix(u.String(), "/"), token: c.Token, http: c.HTTP}
	if made.http == nil {
		transport := &http.Transport{}
		if usual, ok := http.DefaultTransport.(*http.Transport); ok {
			transport = usual.Clone()
		}
		transport.ResponseHeaderTimeout = answerBegins
		made.http = &http.Client{Transport: transport}
	}
	return made, nil
}

// Record identifies a Kafka record, as a producer receives it in the acknowledgement.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
}

// String returns topic/partition@offset.
func (r Record) String() string { return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset) }

// WaitingFor returns a client whose reads of a window wait until these records are counted, so that a producer can
// read its own writes. There may be at most 16 records. most is the maximum wait, up to 10 s; after it a read
// returns the current state, and [Status.Reached] reports whether all records are counted. If a method reads
// several pages, only the first read waits.
func (c *Client) WaitingFor(most time.Duration, records ...Record) *Client {
	waiting := *c
	waiting.until, waiting.wait = slices.Clone(records), most
	return &waiting
}

// request is a request that can be sent several times.
type request struct {
	path  string // escaped, starting after /v1
	query url.Values
	// header has additional headers, which override the usual ones.
	header http.Header
	post   any // the body of a POST; nil: send a GET
}

// get sends a request and decodes the response.
func get[T any](ctx context.Context, c *Client, r *request) (*T, error) {
	answer := new(T)
	err := c.send(ctx, r, func(body io.Reader) error {
		limited := &io.LimitedReader{R: body, N: mostBytes}
		if err := json.NewDecoder(limited).Decode(answer); err != nil {
			if limited.N <= 0 {
				return fmt.Errorf("the answer has more than %d bytes", mostBytes)
			}
			return fmt.Errorf("the answer can't be read: %w", err)
		}
		_, _ = io.CopyN(io.Discard, body, 1<<10) // read to the end, so that the connection can be reused
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// send sends a request, and repeats it while it is refused temporarily. read reads the response's body.
func (c *Client) send(ctx context.Context, r *request, read func(io.Reader) error) error {
	var body []byte
	if r.post != nil {
		var err error
		if body, err = json.Marshal(r.post); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	var refused *Problem
	between := newPause(ctx)
	err := backoff.Retry(func() error {
		err := c.try(ctx, r, body, read)
		if p, ok := errors.AsType[*Problem](err); ok && p.passes() {
			refused, between.atLeast = p, p.RetryAfter
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(between, ctx))
	if _, ok := errors.AsType[*Problem](err); err != nil && !ok && refused != nil {
		err = fmt.Errorf("%w, after: %w", err, refused) // the context ended during the wait
	}
	if err != nil {
		return fmt.Errorf("client: %s: %w", r.path, err)
	}
	return nil
}

// try sends the request once.
func (c *Client) try(ctx context.Context, r *request, body []byte, read func(io.Reader) error) error {
	method := http.MethodGet
	if r.post != nil {
		method = http.MethodPost
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Accept", "application/json, application/problem+json, application/x-ndjson")
	if r.post != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	for name := range r.header {
		q.Header[name] = r.header[name]
	}
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(q)
	if err != nil {
		if sent, ok := errors.AsType[*url.Error](err); ok {
			err = sent.Err // send adds the path
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return problemOf(answer)
	}
	return read(answer.Body)
}

// pause is the wait between two attempts: the API's Retry-After plus a growing random time, so that clients that
// were refused together do not retry together.
type pause struct {
	*backoff.ExponentialBackOff

	ctx     context.Context //nolint:containedctx // of the one request that it is for
	atLeast time.Duration
}

func newPause(ctx context.Context) *pause {
	return &pause{ctx: ctx, ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0),
	)}
}

// NextBackOff returns the wait, or Stop if the context would end before.
func (p *pause) NextBackOff() time.Duration {
	next := p.atLeast + p.ExponentialBackOff.NextBackOff()
	if end, ok := p.ctx.Deadline(); ok && time.Until(end) < next {
		return backoff.Stop
	}
	return next
}

// pathOf returns the path below /v1 with the escaped parts. An empty part is an error, and so are . and .., which
// clients and proxies would normalise.
func pathOf(parts ...string) (string, error) {
	path := "/v1"
	for _, part := range parts {
		switch part {
		case "":
			return "", errors.New("client: a board, period, window or member is empty")
		case ".", "..":
			return "", fmt.Errorf("client: %q can't be part of a path: look such a member up by Lookup", part)
		}
		path += "/" + url.PathEscape(part)
	}
	return path, nil
}

// parameters are the parameters of a query.
type parameters struct{ url.Values }

func (p parameters) number(name string, n int64) {
	if n != 0 {
		p.Set(name, strconv.FormatInt(n, 10))
	}
}

func (p parameters) text(name, text string) {
	if text != "" {
		p.Set(name, text)
	}
}

// waiting adds the records that the client's reads wait for.
func (p parameters) waiting(c *Client) {
	for _, r := range c.until {
		p.Add("min_offset", r.String())
	}
	if len(c.until) > 0 {
		p.Set("wait_ms", strconv.FormatInt(c.wait.Milliseconds(), 10))
	}
}
