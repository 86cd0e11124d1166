// Package client reads the boards of standings over its HTTP API, docs/api.md.
//
//	c, err := client.New(client.Config{BaseURL: "http://localhost:8090", Token: token})
//	page, err := c.Standings(ctx, client.Ref{Board: "global", Period: "weekly"}, client.Query{Limit: 10})
//
// Every answer about a window has its [Trust]: as of when it is true, and whether that is all there
// is. A refusal is a [*Problem], which errors.As finds. One that passes, by its status of 429 or 503
// and a Retry-After, is waited out and sent again until the context ends; nothing else is sent twice.
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

// Config is what a client is made of.
type Config struct {
	// BaseURL is where the API is, without /v1: https://boards.example, or with a path before it.
	BaseURL string
	// Token is the bearer token; empty where none is needed.
	Token string
	// HTTP sends the requests; nil: a client that waits 30 s for an answer to begin, and for as long
	// as the context lasts for its end.
	HTTP *http.Client
}

// Client reads an API. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	// until and wait are what reads of a window wait for.
	until []Record
	wait  time.Duration
}

const (
	answerBegins = 30 * time.Second
	// mostBytes bounds an answer: a thousand rows of the longest ids, and of boards with the most
	// fields, are less than half of it.
	mostBytes        = 16 << 20
	mostProblemBytes = 64 << 10
)

// New makes a client. It sends nothing yet.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // without the URL, in which a password may be
	}
	if err != nil {
		return nil, fmt.Errorf("client: BaseURL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("client: BaseURL %q isn't one such as https://boards.example", u.Redacted())
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

// Record is a record of Kafka, as a producer is told it.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
}

// String is topic/partition@offset.
func (r Record) String() string { return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset) }

// WaitingFor is a client whose reads of a window wait until these records count, at most 16 of them:
// so a producer reads what it has written. They wait at most for a time, up to 10 s, and answer then
// all the same: [Trust.Reached] says whether all of them count. Of several pages only the first one
// waits.
func (c *Client) WaitingFor(most time.Duration, records ...Record) *Client {
	waiting := *c
	waiting.until, waiting.wait = slices.Clone(records), most
	return &waiting
}

// request is one, which can be sent several times.
type request struct {
	path  string // escaped, from /v1 on
	query url.Values
	// header is what is sent besides, and in place of what is sent otherwise.
	header http.Header
	post   any // the body of a POST; nil: it is a GET
}

// get sends a request, and reads its answer.
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
		_, _ = io.CopyN(io.Discard, body, 1<<10) // what follows the JSON, so that the connection is used again
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// send sends a request until it isn't refused for now, and has the body of the answer read.
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
		err = fmt.Errorf("%w, after: %w", err, refused) // the context has ended while it waited
	}
	if err != nil {
		return fmt.Errorf("client: %s: %w", r.path, err)
	}
	return nil
}

// try sends it once.
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
			err = sent.Err // send names the path
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return problemOf(answer)
	}
	return read(answer.Body)
}

// pause is how long to wait between two tries: what the API asks for, and on top of that a time at
// random that grows, so that clients who were refused together don't come again together.
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

// NextBackOff is the wait; Stop where the context would end before.
func (p *pause) NextBackOff() time.Duration {
	next := p.atLeast + p.ExponentialBackOff.NextBackOff()
	if end, ok := p.ctx.Deadline(); ok && time.Until(end) < next {
		return backoff.Stop
	}
	return next
}

// pathOf is a path below /v1 of parts as they are. A part that isn't there, and one that clients and
// proxies would tidy up, is an error.
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

// parameters are those of a query.
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

// waiting adds what the client's reads wait for.
func (p parameters) waiting(c *Client) {
	for _, r := range c.until {
		p.Add("min_offset", r.String())
	}
	if len(c.until) > 0 {
		p.Set("wait_ms", strconv.FormatInt(c.wait.Milliseconds(), 10))
	}
}
