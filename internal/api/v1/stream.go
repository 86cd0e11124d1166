package v1

// A window as it changes, as server-sent events (the HTML standard, 9.2): a snapshot, then changes.
//
// A stream is a loop: take the latest there is, write it, wait for the client's interval and for
// news. While a write waits for its client nothing is taken; so a slow client has no queue here, and
// gets the latest when it has read the last.

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	server "github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/api/v1/live"
)

const (
	mostStreamed       = 100 // rows of the top
	mostStreamedAround = 50
	leastInterval      = 100   // ms
	longestInterval    = 60000 // ms

	// streamWrite is the time that a client may take for one event.
	streamWrite = 5 * time.Second
	// heartbeat is after how long without an event one is sent that says nothing, so that neither the
	// client nor what is in between takes the connection for dead. It is an event, since an EventSource
	// shows no comments. The token is checked again by then.
	heartbeat      = 15 * time.Second
	heartbeatEvent = "event: heartbeat\ndata: {}\n\n"
	// streamLife is how long a stream lasts, give or take a fifth: then the client comes again,
	// maybe to another process.
	streamLife = 10 * time.Minute
	// sources is for how many streams there may be one source: a board's have the same.
	streamsOfSource = 4
)

// stream is one that is open.
type stream struct {
	*api
	*request
	watch    *live.Watch
	interval time.Duration

	w       http.ResponseWriter
	control *http.ResponseController
	checked time.Time // when the token was
}

// streamWindow is GET …/stream.
func (a *api) streamWindow(q *request, w http.ResponseWriter) error {
	of, err := q.watched(a)
	if err != nil {
		return err
	}
	ms, err := q.number("interval_ms", leastInterval, leastInterval, longestInterval)
	if err != nil {
		return err
	}
	s := &stream{api: a, request: q, interval: time.Duration(ms) * time.Millisecond, w: w, control: http.NewResponseController(w), checked: time.Now()}
	if err := a.watch(of, q.client, s); err != nil {
		return err
	}
	defer s.watch.Leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx passes each event on at once
	h.Set("Connection", "close")     // its buffers aren't those of other answers
	if q.Method == http.MethodHead {
		return nil
	}
	s.watch.Resume(q.Header.Get("Last-Event-ID"))
	server.Stream(q.ctx)
	closed := a.Metrics.streamOpened()
	defer closed()
	s.run()
	return nil
}

// watched are the parameters that say what is shown. A window that there isn't is an error; Redis
// that is away isn't: the stream says so.
func (q *request) watched(a *api) (*watched, error) {
	of := &watched{board: q.PathValue("board"), period: q.PathValue("period"), window: q.PathValue("window")}
	limit, err := q.number("limit", usualLimit, 1, mostStreamed)
	if err != nil {
		return nil, err
	}
	n, err := q.number("n", usualAround, 0, mostStreamedAround)
	if err != nil {
		return nil, err
	}
	if of.ranks, err = q.choice("ranks", ordinal, competition, modified); err != nil {
		return nil, err
	}
	switch top := !q.query.Has("member"); {
	case top && q.query.Has("n"):
		return nil, wrong("n", "requires member")
	case top:
		of.limit = int(limit)
	case q.query.Has("limit"):
		return nil, wrong("limit", "excludes member: use n")
	default:
		of.n = int(n)
		if of.member, err = member("member", q.query.Get("member")); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(q.ctx, a.Timeout)
	defer cancel()
	_, err = a.Reader.Target(ctx, of.board, of.period, of.window)
	if p := problemOf(err); err != nil && p.word == notFound {
		return nil, p
	}
	return of, nil
}

// run sends events until the client goes or is too slow, the server ends, or the stream has lasted
// long enough.
func (s *stream) run() {
	life := time.NewTimer(streamLife*4/5 + rand.N(streamLife*2/5))
	defer life.Stop()
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	// Those who were cut off together come again one by one.
	if !s.send(fmt.Sprintf("retry: %d\n\n", 2000+rand.IntN(3001))) {
		return
	}
	for paused := true; ; {
		var news <-chan struct{}
		if !paused {
			var event *live.Event
			if event, news = s.watch.Take(); event != nil {
				if !s.event(event) {
					return
				}
				beat.Reset(heartbeat)
				pause.Reset(s.interval)
				paused = true
			}
		}
		select {
		case <-news:
		case <-pause.C:
			paused = false
		case <-beat.C:
			if !s.send(heartbeatEvent) {
				return
			}
			beat.Reset(heartbeat)
		case <-life.C:
			s.expect()
			return
		case <-s.live.Done():
			s.expect()
			return
		case <-s.ctx.Done():
			return
		}
		if now := time.Now(); now.Sub(s.checked) >= heartbeat {
			if s.checked = now; !s.mayRead() {
				s.expect()
				return
			}
		}
	}
}

// mayRead reports whether the token still is one.
func (s *stream) mayRead() bool {
	if s.Tokens == nil {
		return true
	}
	_, p := s.Tokens.holder(s.Request)
	return p == nil
}

// event sends one. A problem has no ID, and nor has a heartbeat: so the client's last one stays.
func (s *stream) event(e *live.Event) bool {
	id := ""
	if e.ID != "" {
		id = "id: " + e.ID + "\n"
	}
	s.Metrics.streamEvent(e.Name)
	s.expect()
	for _, part := range [][]byte{[]byte(id + "event: " + e.Name + "\ndata: "), e.Head, e.Rest, []byte("\n\n")} {
		if _, err := s.w.Write(part); err != nil {
			return false
		}
	}
	return s.control.Flush() == nil
}

// send sends a text.
func (s *stream) send(text string) bool {
	s.expect()
	_, err := io.WriteString(s.w, text)
	return err == nil && s.control.Flush() == nil
}

// expect begins the time for the next write, in place of that for the whole answer.
func (s *stream) expect() {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // where there is none there is no limit
}
