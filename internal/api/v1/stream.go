package v1

// A window as a stream of server-sent events (HTML standard, 9.2): a snapshot, then changes.
//
// A stream runs a loop: it takes the latest version, writes it, and waits for the client's interval and for news.
// While a write waits for its client the stream takes nothing. So a slow client has no queue in this process, and
// gets the latest version once it has read the previous one.

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
	mostStreamed       = 100 // rows from the top
	mostStreamedAround = 50
	leastInterval      = 100   // ms
	longestInterval    = 60000 // ms

	// streamWrite is how long a client may take to receive one event.
	streamWrite = 5 * time.Second
	// heartbeat is the time without events after which the stream sends an empty one, so that neither the client
	// nor a proxy between takes the connection for dead. It is an event and not a comment, since EventSource does
	// not expose comments. The stream checks its token again at the same interval.
	heartbeat      = 15 * time.Second
	heartbeatEvent = "event: heartbeat\ndata: {}\n\n"
	// streamLife is how long a stream lasts, plus or minus a fifth. The client then reconnects, possibly to
	// another process.
	streamLife = 10 * time.Minute
	// streamsOfSource is the number of streams per source: the limit on streams divided by it is the limit on
	// sources. Streams that show the same share a source.
	streamsOfSource = 4
)

// stream is an open stream.
type stream struct {
	*api
	*request
	watch    *live.Watch
	interval time.Duration

	w       http.ResponseWriter
	control *http.ResponseController
	checked time.Time // when the token was last checked
}

// streamWindow handles GET …/stream.
func (a *api) streamWindow(q *request, w http.ResponseWriter) error {
	ms := q.number("interval_ms", leastInterval, leastInterval, longestInterval)
	of, err := q.watched(a)
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
	h.Set("X-Accel-Buffering", "no") // nginx must pass on each event at once
	h.Set("Connection", "close")     // its small send buffer must not serve other responses
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

// watched reads the parameters that select what the stream shows. An unknown window is an error. An unreachable
// Redis is not: the stream reports it.
func (q *request) watched(a *api) (*watched, error) {
	of := &watched{board: q.PathValue("board"), period: q.PathValue("period"), window: q.PathValue("window")}
	limit := q.number("limit", usualLimit, 1, mostStreamed)
	n := q.number("n", usualAround, 0, mostStreamedAround)
	of.ranks = q.choice("ranks", ordinal, competition, modified)
	switch top := !q.query.Has("member"); {
	case top && q.query.Has("n"):
		return nil, wrong("n", "n requires member")
	case top:
		of.limit = int(limit)
	case q.query.Has("limit"):
		return nil, wrong("limit", "limit excludes member. Use n")
	default:
		of.n, of.member = int(n), q.member(q.query.Get("member"))
	}
	if q.err != nil {
		return nil, q.err
	}
	ctx, cancel := context.WithTimeout(q.ctx, a.Timeout)
	defer cancel()
	_, err := a.Reader.Target(ctx, of.board, of.period, of.window)
	if p := problemOf(err); err != nil && p.word == notFound {
		return nil, p
	}
	return of, nil
}

// run sends events until the client disconnects or is too slow, the server ends, or the stream's life is over.
func (s *stream) run() {
	life := time.NewTimer(streamLife*4/5 + rand.N(streamLife*2/5))
	defer life.Stop()
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	// Spread out the reconnects of clients that were disconnected together.
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

// mayRead reports whether the stream's token is still valid.
func (s *stream) mayRead() bool {
	if s.Tokens == nil {
		return true
	}
	_, p := s.Tokens.holder(s.Request)
	return p == nil
}

// event sends one event. Problems and heartbeats have no ID, so that the client keeps its last one.
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

// expect sets the deadline for the next write. It replaces the deadline of the whole response.
func (s *stream) expect() {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // without support for deadlines there is no limit
}
