package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// WatchQuery selects the rows to watch. The zero WatchQuery selects the first ten.
type WatchQuery struct {
	Limit int // number of rows from the top, 1 to 100; 0 means 10. Must be 0 if Member is set
	// Member selects the rows around a member instead of the top: N rows above and below, 1 to 50; 0 means 5.
	// There are no rows while the member has no standing in the window.
	Member string
	N      int
	Ranks  Ranks // any style except Dense
	// Interval is the minimum time between two events, 100 ms to a minute; 0 means 100 ms.
	Interval time.Duration
}

// Live is the state of a watched window at one instant.
type Live struct {
	Window    Window     `json:"window"`
	Status    Status     `json:"status"`
	Ranks     Ranks      `json:"ranks"`
	Member    string     `json:"member"` // the member whose surroundings are shown; empty for the top
	Standings []Standing `json:"standings"`
}

// Watch follows a window. It yields the window's current state, and the new state after every change. If the Ref
// names Current or Previous, Watch switches to the next window when that becomes the current or previous one.
//
// The sequence ends when the loop ends, when the context ends, or on a [*Problem] that would also occur again,
// such as not-found. The context's error or the problem is then the last value. Watch reconnects if the connection
// is lost or the server closes it, which it does after some minutes; the loop does not notice this. Watch yields
// other errors and continues: a [*Problem] if the window cannot be read at the moment, and an error if the server
// cannot be reached. The last state yielded is still valid as of its Status.AsOf.
func (c *Client) Watch(ctx context.Context, r Ref, q WatchQuery) iter.Seq2[*Live, error] {
	return func(yield func(*Live, error) bool) {
		path, err := r.below("stream")
		if err != nil {
			yield(nil, err)
			return
		}
		p := parameters{url.Values{}}
		p.number("limit", int64(q.Limit))
		p.text("member", q.Member)
		p.number("n", int64(q.N))
		p.text("ranks", string(q.Ranks))
		p.number("interval_ms", q.Interval.Milliseconds())
		s := &stream{yield: yield, between: newPause(ctx)}
		s.between.atLeast = usualRetry
		for {
			err := s.read(ctx, c, &request{path: path, query: p.Values})
			switch {
			case errors.Is(err, errStopped):
				return
			case ctx.Err() != nil:
				yield(nil, fmt.Errorf("client: %s: %w", path, context.Cause(ctx)))
				return
			case errors.Is(err, errEnded): // reconnect
			case !yield(nil, err) || lasts(err):
				return
			}
			if s.wait(ctx) != nil {
				yield(nil, fmt.Errorf("client: %s: %w", path, context.Cause(ctx)))
				return
			}
		}
	}
}

const (
	usualRetry = 3 * time.Second
	// quiet is the time without data after which the connection is considered lost. The server sends a heartbeat
	// every 15 s.
	quiet       = 30 * time.Second
	mostOfEvent = 1 << 20 // bytes
)

var (
	errEnded = errors.New("the stream has ended")
	errQuiet = errors.New("nothing has come of the stream for 30 s")
)

// lasts reports whether an error is a refusal that would occur again.
func lasts(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests
}

// stream is the state of a watch over all its connections.
type stream struct {
	yield   func(*Live, error) bool
	between *pause // wait between two connections
	last    string // ID of the last event
	live    *Live  // nil before the first snapshot
	rows    map[string]Standing
}

// wait waits between two connections, at least for the time that the server has requested.
func (s *stream) wait(ctx context.Context) error {
	d := s.between.NextBackOff()
	if d == backoff.Stop { // the context ends before
		<-ctx.Done()
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read reads one connection to its end, and always returns an error.
func (s *stream) read(ctx context.Context, c *Client, r *request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.header = http.Header{"Accept": {"text/event-stream, application/problem+json"}}
	if s.last != "" {
		r.header.Set("Last-Event-ID", s.last)
	}
	return c.send(ctx, r, func(body io.Reader) error {
		dead := time.AfterFunc(quiet, func() { cancel(errQuiet) })
		defer dead.Stop()
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, mostOfEvent)
		var e event
		for lines.Scan() {
			dead.Reset(quiet)
			if len(lines.Bytes()) > 0 {
				e.line(lines.Bytes())
				if len(e.data) > mostOfEvent {
					return fmt.Errorf("an event has more than %d bytes", mostOfEvent)
				}
				continue
			}
			dead.Stop() // the loop may take any time
			if err := s.take(&e); err != nil {
				return err
			}
			e = event{}
			dead.Reset(quiet)
		}
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return fmt.Errorf("an event has more than %d bytes", mostOfEvent)
		}
		return errEnded // also if the connection was lost
	})
}

// event is a server-sent event (HTML standard, 9.2).
type event struct {
	id, name string
	data     []byte
	retry    time.Duration
}

func (e *event) line(text []byte) {
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) { // the field name of a comment is empty
	case "id":
		e.id = string(value)
	case "event":
		e.name = string(value)
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// change is the difference from the previous event.
type change struct {
	Window struct {
		Members     int64 `json:"members"`
		SecondsLeft int64 `json:"seconds_left"`
	} `json:"window"`
	Status    Status     `json:"status"`
	Removed   []string   `json:"removed"`
	Standings []Standing `json:"standings"`
}

// take applies an event to the state, and yields the state.
func (s *stream) take(e *event) error {
	if e.retry > 0 {
		s.between.atLeast = e.retry
	}
	switch e.name {
	case "snapshot":
		live := new(Live)
		if err := json.Unmarshal(e.data, live); err != nil {
			return fmt.Errorf("a snapshot can't be read: %w", err)
		}
		s.live, s.rows = live, map[string]Standing{}
		s.put(live.Standings)
	case "change":
		var c change
		if err := json.Unmarshal(e.data, &c); err != nil {
			return s.forget(fmt.Errorf("a change can't be read: %w", err))
		}
		if s.live == nil {
			return s.forget(errors.New("a change has come before a snapshot"))
		}
		s.live.Window.Members, s.live.Window.SecondsLeft, s.live.Status = c.Window.Members, c.Window.SecondsLeft, c.Status
		for _, member := range c.Removed {
			delete(s.rows, member)
		}
		s.put(c.Standings)
	case "problem":
		p := new(Problem)
		if err := json.Unmarshal(e.data, p); err != nil {
			return fmt.Errorf("a problem can't be read: %w", err)
		}
		if !s.yield(nil, p) {
			return errStopped
		}
		return nil
	default:
		return nil // a heartbeat, or an event of a later version
	}
	s.between.Reset()
	if e.id != "" {
		s.last = e.id
	}
	shown := *s.live
	shown.Standings = make([]Standing, 0, len(s.rows))
	for _, row := range s.rows {
		shown.Standings = append(shown.Standings, row)
	}
	slices.SortFunc(shown.Standings, func(a, b Standing) int { // by rank; within a shared rank the earlier one first
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.ReachedAt.Compare(b.ReachedAt), cmp.Compare(b.Member, a.Member))
	})
	if !s.yield(&shown, nil) {
		return errStopped
	}
	return nil
}

func (s *stream) put(all []Standing) {
	for i := range all {
		s.rows[all[i].Member] = all[i]
	}
}

// forget makes the next connection begin with a snapshot.
func (s *stream) forget(err error) error {
	s.last, s.live = "", nil
	return err
}
