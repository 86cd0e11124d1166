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

// WatchQuery is what of a window is watched: by default the first ten rows.
type WatchQuery struct {
	Limit int // 1 to 100 rows of the top; 0 is 10. Not with Member
	// Member is whose surroundings are watched in place of the top, N rows above and below, 1 to 50; 0
	// is 5. There are no rows while the member isn't in the window.
	Member string
	N      int
	Ranks  Ranks // not Dense
	// Interval is the least time between two events, 100 ms to a minute; 0 is 100 ms.
	Interval time.Duration
}

// Live is all that is shown of a window that is watched, at a moment.
type Live struct {
	Window    Window     `json:"window"`
	Trust     Trust      `json:"trust"`
	Ranks     Ranks      `json:"ranks"`
	Member    string     `json:"member"` // whose surroundings it is; empty of the top
	Standings []Standing `json:"standings"`
}

// Watch is a window as it changes: all that is shown of it, first as it is, and then after every
// change. A window without a name follows the clock.
//
// It ends with the loop, with the context, whose error is the last thing that it yields, and with a
// Problem that sending again doesn't help, such as not-found. A connection that is lost is made again,
// and so is one that the server ends, as it does after some minutes; the loop sees nothing of that.
// Other errors are yielded, and it goes on: that the window can't be read right now, a *Problem, and
// that the server can't be reached. What was shown before still stands, as of its Trust.At.
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
			case errors.Is(err, errEnded): // it is made again
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
	// quiet is how long nothing may come: the server sends a heartbeat every 15 s.
	quiet       = 30 * time.Second
	mostOfEvent = 1 << 20 // bytes
)

var (
	errEnded = errors.New("the stream has ended")
	errQuiet = errors.New("nothing has come of the stream for 30 s")
)

// lasts reports whether a refusal is one that sending again doesn't help.
func lasts(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests
}

// stream is what was read of one, over all its connections.
type stream struct {
	yield   func(*Live, error) bool
	between *pause // between two connections
	last    string // ID of the last event
	live    *Live  // nil before the first snapshot
	rows    map[string]Standing
}

// wait waits between two connections, at least for as long as the server has said.
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

// read reads one connection to its end, which is always an error.
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
			dead.Stop() // the loop may take its time
			if err := s.take(&e); err != nil {
				return err
			}
			e = event{}
			dead.Reset(quiet)
		}
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return fmt.Errorf("an event has more than %d bytes", mostOfEvent)
		}
		return errEnded // also where the connection broke off
	})
}

// event is one of a stream, by the HTML standard, 9.2.
type event struct {
	id, name string
	data     []byte
	retry    time.Duration
}

func (e *event) line(text []byte) {
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) { // a comment has an empty one
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

// change is the difference between two events.
type change struct {
	Window struct {
		Members     int64 `json:"members"`
		SecondsLeft int64 `json:"seconds_left"`
	} `json:"window"`
	Trust     Trust      `json:"trust"`
	Left      []string   `json:"left"`
	Standings []Standing `json:"standings"`
}

// take puts an event into what is shown, and yields that.
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
		s.live.Window.Members, s.live.Window.SecondsLeft, s.live.Trust = c.Window.Members, c.Window.SecondsLeft, c.Trust
		for _, member := range c.Left {
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
		return nil // a heartbeat, or what comes with a later version
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
	slices.SortFunc(shown.Standings, func(a, b Standing) int { // of those that rank alike the earlier is above
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

// forget has the next connection begin with a snapshot.
func (s *stream) forget(err error) error {
	s.last, s.live = "", nil
	return err
}
