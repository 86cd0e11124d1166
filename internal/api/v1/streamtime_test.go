package v1

// Streams over simulated time: the clock of everything, including Redis, is simulated.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/simulate/redissim"
)

// simulated is a fixture with simulated time.
type simulated struct {
	*fixture
	redis  *redissim.Server
	ahead  atomic.Int64 // how far Redis's clock is ahead, in ns
	away   atomic.Bool  // Redis refuses connections
	server *http.Server
	pipes  *pipes
}

// pipes is a listener without a network or buffers: a write blocks until the other side reads.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.done); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// simulate runs a test with a fixture in simulated time. The server has the same deadlines as the API's port.
func simulate(t *testing.T, of ledger.Shards, do func(t *testing.T, s *simulated), change ...func(*Config, *reading.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulated{pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
		s.redis = redissim.New(func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) })
		s.redis.Refuse = func(string) error {
			if s.away.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		client := redisconn.NewClient(redisconn.Settings{Addresses: []string{"redis:6379"}, Timeout: time.Second, Network: s.redis.Dialer("api")}).(*redis.Client)
		t.Cleanup(func() {
			_ = client.Close() // no call is in flight
			s.redis.Close()
		})
		s.fixture = fixtureOn(t, client, "lb", of, codec.Readable, change...)
		s.server = &http.Server{Handler: s.fixture, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
		served := make(chan struct{})
		go func() { defer close(served); _ = s.server.Serve(s.pipes) }()
		t.Cleanup(func() {
			_ = s.server.Close()
			<-served
		})
		do(t, s)
	})
}

// open opens a stream whose client reads events as they arrive.
func (s *simulated) open(path string, header ...string) *viewer {
	return s.openSlow(path, header...).follow()
}

// openSlow opens a stream whose client reads only when the test calls it.
func (s *simulated) openSlow(path string, header ...string) *viewer {
	return openStream(s.t, s.pipes.dial, path, header...)
}

// reads returns how often boards were read from Redis for streams.
func (s *simulated) reads() int { return int(testutil.ToFloat64(s.config.Metrics.streamReads)) }

// scripts counts script calls to Redis.
type scripts struct{ calls atomic.Int64 }

func (h *scripts) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *scripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			h.calls.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (h *scripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAllWhoWatchABoardCostOneReadOfIt(t *testing.T) {
	for _, clients := range []int{1, 2, 30} {
		simulate(t, 1, func(t *testing.T, s *simulated) {
			s.crowd(20)
			count := &scripts{}
			s.client.AddHook(count)
			for range clients {
				v := s.open(w("global") + "/stream")
				require.Equal(t, live.Snapshot, v.next())
			}
			synctest.Wait()
			began, reads := count.calls.Load(), s.reads()
			time.Sleep(10*time.Second + time.Millisecond)
			require.Equal(t, 100, int(count.calls.Load()-began), "%d clients", clients)
			require.Equal(t, 100, s.reads()-reads)
			require.InDelta(t, clients, testutil.ToFloat64(s.config.Metrics.streams), 0)

			own := s.open(w("global") + "/stream?member=u1&n=2")
			same := s.open(w("global") + "/stream?member=u1&n=2&interval_ms=5000")
			require.Equal(t, live.Snapshot, own.next())
			require.Equal(t, live.Snapshot, same.next())
			began = count.calls.Load()
			time.Sleep(10 * time.Second)
			require.InDelta(t, 200, count.calls.Load()-began, 2, "two are watched")
		})
	}
}

// A slow reader gets no event twice, and the next event that it reads is the latest.
func TestWhoReadsSlowlyGetsTheLatestAndNoQueue(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		slow, quick := s.openSlow(w("global")+"/stream"), s.open(w("global")+"/stream")
		require.Equal(t, live.Snapshot, quick.next())
		require.Equal(t, live.Snapshot, slow.next())
		for i := range int64(15) {
			s.put("global", s.standing("global", "u1", 0, i), s.standing("global", fmt.Sprint("v", i), 0, 100))
			require.Equal(t, live.Change, quick.next())
			time.Sleep(150 * time.Millisecond) // the first change waits in the pipe meanwhile
		}
		synctest.Wait()
		require.Equal(t, live.Change, slow.next())
		require.NotEqual(t, quick.shown(), slow.shown(), "what was on its way")
		require.Equal(t, live.Change, slow.next())
		require.Equal(t, quick.shown(), slow.shown())
		require.Equal(t, []string{live.Snapshot, live.Change, live.Change}, slow.events)
	})
}

func TestWhoDoesNotReadIsCutOff(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		v := s.openSlow(w("global") + "/stream")
		require.Equal(t, live.Snapshot, v.next())
		s.put("global", s.standing("global", "u1", 0, 1))
		time.Sleep(4 * time.Second)
		require.InDelta(t, 1, testutil.ToFloat64(s.config.Metrics.streams), 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.InDelta(t, 0, testutil.ToFloat64(s.config.Metrics.streams), 0)
		reads := s.reads()
		time.Sleep(time.Minute)
		require.Equal(t, reads, s.reads(), "nobody watches any more")
	})
}

func TestAClientGetsNoMoreThanAnEventAnInterval(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		v := s.open(w("global") + "/stream?interval_ms=2000")
		require.Equal(t, live.Snapshot, v.next())
		began := time.Now()
		stop := make(chan struct{})
		var moving sync.WaitGroup
		moving.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					s.put("global", s.standing("global", "u1", 0, i))
				}
			}
		})
		for range 10 {
			require.Equal(t, live.Change, v.next())
		}
		close(stop)
		moving.Wait()
		require.InDelta(t, 20, time.Since(began).Seconds(), 1.5)
	})
}

// Consumers report every second, mostly without a change.
func TestAReportAloneSendsNothing(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		s.crowd(3)
		s.reported()
		v := s.open(w("global") + "/stream")
		require.Equal(t, live.Snapshot, v.next())
		for range 14 {
			time.Sleep(time.Second)
			s.reported()
		}
		synctest.Wait()
		require.Empty(t, v.arrived)
		s.put("global", s.standing("global", "u1", 0, 500))
		require.Equal(t, live.Change, v.next())
	})
}

func TestAStreamOutlivesTheDeadlinesOfRequestsAndEndsByItself(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		began := time.Now()
		v := s.open(w("global") + "/stream?interval_ms=60000")
		require.Equal(t, live.Snapshot, v.next())
		for v.next() != "" { // events about behind, lag and the like, since no consumer reports here
		}
		require.InDelta(t, 10, time.Since(began).Minutes(), 2)
		require.InDelta(t, time.Since(began)/heartbeat, len(v.events)-1, 2, "heartbeats")
		require.NotContains(t, v.events[1:], live.Snapshot)
	})
}

func TestAStreamGoesOnFromItsLastEvent(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		s.crowd(20)
		first := s.open(w("global") + "/stream?limit=3")
		require.Equal(t, live.Snapshot, first.next())
		other := s.open(w("global") + "/stream?limit=3") // the source continues meanwhile
		require.Equal(t, live.Snapshot, other.next())
		first.end()
		for i := range int64(5) {
			s.put("global", s.standing("global", "u1", 0, 100+i), s.standing("global", fmt.Sprint("v", i), 0, 200))
			require.Equal(t, live.Change, other.next())
		}
		again := s.open(w("global")+"/stream?limit=3", "Last-Event-ID", first.id)
		again.rows = maps.Clone(first.rows)
		require.Equal(t, live.Change, again.next())
		require.Equal(t, other.shown(), again.shown())
		again.end()

		again = s.open(w("global")+"/stream?limit=3", "Last-Event-ID", other.id) // nothing has changed since
		again.rows = maps.Clone(other.rows)
		s.put("global", s.standing("global", "w", 0, 300))
		require.Equal(t, live.Change, again.next())
		require.Equal(t, live.Change, other.next())
		require.Equal(t, other.shown(), again.shown())

		for _, id := range []string{"x", "x-1", "-", "1", other.id + "0", strings.Repeat("9", 300), strings.Split(other.id, "-")[0] + "-0"} {
			v := s.open(w("global")+"/stream?limit=3", "Last-Event-ID", id)
			require.Equal(t, live.Snapshot, v.next(), id)
		}
		of := s.open(w("global")+"/stream?limit=4", "Last-Event-ID", other.id) // a different limit shows something else
		require.Equal(t, live.Snapshot, of.next())

		for i := range int64(40) { // more versions than the source keeps
			s.put("global", s.standing("global", "u1", 0, 400+i))
			require.Equal(t, live.Change, other.next())
		}
		old := s.open(w("global")+"/stream?limit=3", "Last-Event-ID", first.id)
		require.Equal(t, live.Snapshot, old.next())
		require.Equal(t, other.shown(), old.shown())
	})
}

func TestAStreamFollowsTheWindowsBorder(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		simulate(t, of, func(t *testing.T, s *simulated) {
			s.crowd(20)
			current, named := s.open(w("global")+"/stream"), s.open("/v1/boards/global/periods/weekly/windows/"+s.window.Name+"/stream")
			previous := s.open("/v1/boards/global/periods/weekly/windows/previous/stream")
			for _, v := range []*viewer{current, named, previous} {
				require.Equal(t, live.Snapshot, v.next())
			}
			before := current.shown()
			require.Len(t, before, 10)
			require.Empty(t, previous.shown())
			s.ahead.Store(int64(time.Until(time.UnixMilli(s.window.End))))
			require.Equal(t, live.Snapshot, current.next())
			require.Empty(t, current.shown())
			require.NotEqual(t, s.window.Name, current.window)
			require.Equal(t, live.Snapshot, previous.next())
			require.Equal(t, s.window.Name, previous.window)
			require.Equal(t, before, previous.shown())
			require.Equal(t, before, named.shown())
		})
	}
}

func TestAStreamStaysWhileRedisIsAway(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *simulated) {
		s.crowd(20)
		v := s.open(w("global") + "/stream")
		require.Equal(t, live.Snapshot, v.next())
		s.away.Store(true)
		s.redis.Cut("api")
		require.Equal(t, live.Problem, v.next())
		late := s.open(w("global") + "/stream")
		require.Equal(t, live.Problem, late.next(), "whoever comes meanwhile is told")
		time.Sleep(time.Minute)
		s.away.Store(false)
		s.put("global", s.standing("global", "new", 0, 900))
		for _, v := range []*viewer{v, late} {
			// A read may happen after Redis returns and before the latest write.
			v.until(func() bool { return len(v.shown()) > 0 && v.shown()[0].Member == "new" })
			problem := slices.Index(v.events, live.Problem)
			require.Contains(t, v.events[problem:], live.Snapshot, "%v", v.events)
			require.Contains(t, v.events, "heartbeat", "the connection is alive meanwhile")
			require.Len(t, slices.DeleteFunc(slices.Clone(v.events), func(e string) bool { return e != live.Problem }), 1, "it is one problem: %v", v.events)
		}
		again := s.open(w("global")+"/stream", "Last-Event-ID", v.id)
		again.rows = maps.Clone(v.rows)
		s.put("global", s.standing("global", "newer", 0, 901))
		require.Equal(t, live.Change, again.next())
	})
}

func TestAStreamOfALostBoardSaysSoAndGoesOn(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		s.crowd(20)
		v := s.open(w("global") + "/stream")
		require.Equal(t, live.Snapshot, v.next())
		key := s.boards.Shards()[0].Keys().Listed("global:weekly:" + s.window.Name)
		require.NoError(t, s.client.Rename(t.Context(), key, key+"x").Err())
		require.Equal(t, live.Problem, v.next())
		require.NoError(t, s.client.Rename(t.Context(), key+"x", key).Err())
		require.Equal(t, live.Snapshot, v.next())
	})
}

func TestAStreamFollowsAReshard(t *testing.T) {
	var moved *boards.Boards
	simulate(t, 1, func(t *testing.T, s *simulated) {
		all := s.crowd(20)
		v := s.open(w("global") + "/stream")
		require.Equal(t, live.Snapshot, v.next())
		schema := s.boards.Shards()[0].Keys().Schema()
		before := s.client.Get(t.Context(), schema).Val()

		require.NoError(t, s.client.Set(t.Context(), schema, "{}", 0).Err()) // a schema that this version cannot read
		require.Equal(t, live.Problem, v.next())
		require.NoError(t, s.client.Set(t.Context(), schema, before, 0).Err())
		require.Equal(t, live.Snapshot, v.next())

		other := fixtureOn(t, s.client, s.prefix, 3, codec.Readable)
		other.put("global", append(all, other.standing("global", "new", 0, 500))...)
		moved = other.boards
		require.NoError(t, s.client.Set(t.Context(), schema, ranking.LeftMark(3), 0).Err())
		require.Equal(t, live.Change, v.next(), "they are the same rows")
		require.Equal(t, "new", v.shown()[0].Member)
	}, func(_ *Config, r *reading.Config) {
		r.Renumber = func(context.Context, ledger.Shards) (*boards.Boards, error) { return moved, nil }
	})
}

func TestStreamsEndWithTheServer(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *simulated) {
		s.crowd(20)
		var all []*viewer
		for range 10 {
			v := s.open(w("global") + "/stream")
			require.Equal(t, live.Snapshot, v.next())
			all = append(all, v)
		}
		began := time.Now()
		s.Handler.(*API).EndStreams()
		for _, v := range all {
			require.Empty(t, v.next())
		}
		a := ask(t, s, httptest.NewRequest(http.MethodGet, w("global")+"/stream", nil))
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.NoError(t, s.server.Shutdown(t.Context()))
		s.Handler.(*API).Wait()
		require.Less(t, time.Since(began), time.Second)
		m := s.config.Metrics
		require.InDelta(t, 10, testutil.ToFloat64(m.requests.WithLabelValues("streamWindow", "200")), 0)
		shown := prometheus.NewRegistry()
		shown.MustRegister(m)
		families, err := shown.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "standings_api_request_seconds" {
				require.NotContains(t, fmt.Sprint(f.GetMetric()), "streamWindow", "how long they lasted")
			}
		}
	})
}

func TestStreamsHaveALimitOfTheirOwn(t *testing.T) {
	small := func(c *Config, _ *reading.Config) { c.Requests, c.Streams = 2, 8 }
	simulate(t, 1, func(t *testing.T, s *simulated) {
		from := func(path, address string) said {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = address
			return ask(t, s, r)
		}
		stay := func(path, address string) (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx)
			r.RemoteAddr = address
			done := make(chan struct{})
			go func() { defer close(done); s.ServeHTTP(httptest.NewRecorder(), r) }()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		first := stay(w("global")+"/stream", "10.0.0.1:1")
		// There may be two sources, and one per client.
		a := from(w("arena")+"/stream", "10.0.0.1:2")
		require.Equal(t, http.StatusTooManyRequests, a.status, "%s", a.body)
		require.Contains(t, string(a.body), "Too many different boards and members in streams of this client: the rest of the limit of 2")
		second := stay(w("arena")+"/stream", "10.0.0.2:1")
		a = from(w("global")+"/stream?limit=3", "10.0.0.3:1")
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, "1", a.header.Get("Retry-After"))
		second()
		second = stay(w("global")+"/stream?limit=3", "10.0.0.3:1")
		second()
		// There may be eight streams, and four per client.
		var leave []func()
		for i := range 3 {
			leave = append(leave, stay(w("global")+"/stream", fmt.Sprint("10.0.0.1:", i+2)))
		}
		a = from(w("global")+"/stream", "10.0.0.1:9")
		require.Equal(t, http.StatusTooManyRequests, a.status)
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Contains(t, string(a.body), "Too many concurrent streams of this client: it uses 4 of 8")
		for i := range 4 {
			leave = append(leave, stay(w("global")+"/stream", fmt.Sprintf("10.0.1.%d:1", i)))
		}
		a = from(w("global")+"/stream", "10.0.0.9:1")
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.InDelta(t, 8, testutil.ToFloat64(s.config.Metrics.streamsMax), 0)
		for _, of := range []string{"shown", "streams"} {
			for _, limit := range []string{"client", "all"} {
				require.InDelta(t, 1, testutil.ToFloat64(s.config.Metrics.shed.WithLabelValues(of, limit)), 0, of+" "+limit)
			}
		}
		require.Contains(t, string(a.body), "the limit is 8")
		require.Equal(t, http.StatusOK, from(w("global"), "10.0.0.1:1").status, "none of them is a request that is being answered")
		for _, leave := range append(leave, first) {
			leave()
		}
		require.Equal(t, http.StatusOK, from(w("global")+"/stream", "10.0.0.9:1").status)
	}, small)
}

func TestAStreamEndsSoonAfterItsTokenIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("shop 0123456789abcdef\n")
	simulate(t, 1, func(t *testing.T, s *simulated) {
		v := s.open(w("global")+"/stream", "Authorization", "Bearer 0123456789abcdef")
		require.Equal(t, live.Snapshot, v.next())
		began := time.Now()
		write("shop another-0123456789abcdef\n")
		require.Empty(t, v.next())
		require.LessOrEqual(t, time.Since(began), 2*heartbeat)
	}, func(c *Config, _ *reading.Config) {
		var err error
		c.Tokens, err = OpenTokens(path)
		require.NoError(t, err)
	})
}
