package v1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/reading"
)

func TestAClientWithFewOpenRequestsIsServedBeforeOneWithMany(t *testing.T) {
	l := newLimit("requests", "requests", 64)
	var given []func()
	fill := func(client string) (n int) {
		for {
			give, p := l.take(client, 1)
			if p != nil {
				require.Equal(t, tooMany, p.word)
				require.Equal(t, comeAgain, p.retryAfter)
				return n
			}
			given, n = append(given, give), n+1
		}
	}
	require.Equal(t, []int{32, 16, 8}, []int{fill("a"), fill("b"), fill("c")})
	for i := range 8 { // the rest is for other clients
		give, p := l.take(fmt.Sprint("single", i), 1)
		require.Nil(t, p)
		given = append(given, give)
	}
	_, p := l.take("another", 1)
	require.Equal(t, overloaded, p.word)

	given[0]() // one of client a
	_, p = l.take("a", 1)
	require.Equal(t, tooMany, p.word, "it has 31")
	_, p = l.take("single0", 1)
	require.Equal(t, tooMany, p.word, "it has one")
	give, p := l.take("another", 1)
	require.Nil(t, p, "it has none")
	for _, g := range append(given[1:], give) {
		g()
	}
	require.Zero(t, l.taken)
	require.Empty(t, l.clients)
}

// stuck is a response whose client does not read.
type stuck struct {
	*httptest.ResponseRecorder
	let chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) { <-s.let; return s.ResponseRecorder.Write(b) }

// occupy sends more requests of some clients than the API answers at a time; they last until leave is called. It
// sends them at different times, since a Redis client with a full pool waits by timers that bubbles share.
func (s *simulated) occupy(of func() *http.Request, clients int) (leave func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	let := make(chan struct{})
	var all sync.WaitGroup
	for i := range 128 {
		r := of().WithContext(ctx)
		r.RemoteAddr = fmt.Sprintf("10.1.%d.1:1", i%clients)
		all.Go(func() { s.ServeHTTP(&stuck{httptest.NewRecorder(), let}, r) })
		time.Sleep(time.Millisecond)
	}
	synctest.Wait()
	return func() { cancel(); close(let); all.Wait() }
}

// Long requests from two addresses leave room for other clients. So do bodies that never end, from any number of
// addresses.
func TestRequestsThatLastLeaveRoomForOthers(t *testing.T) {
	get := func(path string) func() *http.Request {
		return func() *http.Request { return httptest.NewRequest(http.MethodGet, w("global")+path, nil) }
	}
	for name, of := range map[string]func() *http.Request{
		"waits":          get("/standings?min_offset=points/0@99999&wait_ms=10000"),
		"exports":        get("/export"),
		"unread answers": get("/standings"),
		"bodies":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *simulated) {
				s.crowd(20)
				bodies, clients := make(chan *io.PipeWriter, 128), 2
				if of == nil {
					of = func() *http.Request {
						body, end := io.Pipe()
						bodies <- end
						r := httptest.NewRequest(http.MethodPost, w("global")+"/members/lookup", body)
						r.ContentLength = 100
						return r
					}
					clients = 128
				}
				leave := s.occupy(of, clients)
				defer func() {
					close(bodies)
					for end := range bodies {
						_ = end.CloseWithError(io.ErrUnexpectedEOF)
					}
					leave()
				}()
				from := func(r *http.Request) int {
					r.RemoteAddr = "10.0.0.9:1"
					return ask(t, s, r).status
				}
				for _, path := range []string{"", "/standings", "/standings?min_offset=points/0@1&wait_ms=100", "/export", "/members/u1"} {
					require.Equal(t, http.StatusOK, from(get(path)()), path)
				}
				r := httptest.NewRequest(http.MethodPost, w("global")+"/members/lookup", strings.NewReader(`{"members":["u1"]}`))
				r.Header.Set("Content-Type", "application/json")
				require.Equal(t, http.StatusOK, from(r))
				if name != "bodies" {
					r := of()
					r.RemoteAddr = "10.1.0.1:9"
					require.Equal(t, http.StatusTooManyRequests, ask(t, s, r).status, "the client has as many as it may")
				}
			})
		})
	}
}

// Bans must be possible while there are too many readers.
func TestReadersDoNotKeepBansOut(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1, func(c *Config) { c.Requests = 8 })
	m.put("global", m.standing("global", "u1", 5, 70))
	let, entered := make(chan struct{}), make(chan struct{}, 8)
	var all sync.WaitGroup
	for i := range 8 {
		r := httptest.NewRequest(http.MethodGet, w("global"), nil)
		r.RemoteAddr = fmt.Sprintf("10.0.%d.1:1", i)
		all.Go(func() { m.ServeHTTP(&entering{stuck{httptest.NewRecorder(), let}, entered}, r) })
	}
	for range 8 {
		<-entered
	}
	require.Equal(t, http.StatusServiceUnavailable, m.get(w("global")).status)
	require.Equal(t, "banned", m.ban(`{"member":"u1","reason":"aimbot"}`).State)
	require.Len(t, m.list("").Bans, 1)
	close(let)
	all.Wait()
}

// entering reports when the response is written.
type entering struct {
	stuck

	entered chan struct{}
}

func (e *entering) Write(b []byte) (int, error) { e.entered <- struct{}{}; return e.stuck.Write(b) }

func TestABodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		conn, err := s.pipes.dial()
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		began := time.Now()
		_, err = io.WriteString(conn, "POST "+w("global")+"/members/lookup HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"members\"")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
		require.Equal(t, bodyWithin, time.Since(began))
		require.True(t, answer.Close)
	})
	m := newModerated(t, 1)
	for path, token := range map[string]string{w("global") + "/members/lookup": "", "/v1/bans": bansToken} {
		r := httptest.NewRequest(http.MethodPost, path, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(os.ErrDeadlineExceeded)))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		require.Equal(t, http.StatusRequestTimeout, ask(t, m, r).status)
	}
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) { u.t.Error("the body is read"); return 0, io.EOF }

func TestBodiesAreBoundedInBytes(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		lookup := func(body io.Reader, bytes int64, address string) (*httptest.ResponseRecorder, *http.Request) {
			r := httptest.NewRequest(http.MethodPost, w("global")+"/members/lookup", body)
			r.ContentLength, r.RemoteAddr = bytes, address
			return httptest.NewRecorder(), r
		}
		to, r := lookup(untouched{t}, longestBody+1, "10.0.0.1:1")
		s.ServeHTTP(to, r)
		require.Equal(t, http.StatusRequestEntityTooLarge, to.Code)

		to, r = lookup(io.LimitReader(zeros{}, longestBody+1), -1, "10.0.0.1:1")
		s.ServeHTTP(to, r)
		require.Equal(t, http.StatusRequestEntityTooLarge, to.Code, "it isn't announced")

		var all sync.WaitGroup
		var ends []*io.PipeWriter
		for i := range mostBodies / longestBody {
			body, end := io.Pipe()
			to, r := lookup(body, longestBody, fmt.Sprintf("10.0.1.%d:1", i))
			ends = append(ends, end)
			all.Go(func() { s.ServeHTTP(to, r) })
		}
		synctest.Wait()
		to, r = lookup(untouched{t}, 1, "10.0.2.1:1")
		s.ServeHTTP(to, r)
		require.Equal(t, http.StatusServiceUnavailable, to.Code)
		require.Equal(t, "1", to.Header().Get("Retry-After"))
		require.InDelta(t, 1, testutil.ToFloat64(s.config.Metrics.shed.WithLabelValues("bodies", limitAll)), 0)
		for _, end := range ends {
			_ = end.CloseWithError(errors.New("gone"))
		}
		all.Wait()
		to, r = lookup(strings.NewReader(`{"members":["a"]}`), 17, "10.0.2.1:1")
		s.ServeHTTP(to, r)
		require.Equal(t, http.StatusOK, to.Code)
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Before this was fixed, 349,000 ids were decoded before the API refused them as too many.
func TestALookupIsReadUpToTheFirstIDTooMany(t *testing.T) {
	text := []byte(`{"members":["x"` + strings.Repeat(`,"y"`, longestBody/4-10) + `]}`)
	allocated := testing.AllocsPerRun(5, func() {
		q := &request{sent: text}
		_, err := q.members()
		require.ErrorContains(t, err, "at most 1000 ids")
	})
	require.Less(t, allocated, 10.0*reading.MostMembers)
}
