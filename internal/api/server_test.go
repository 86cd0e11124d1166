package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// port is a server under test.
type port struct {
	t        *testing.T
	server   *Server
	notYet   atomic.Pointer[[]Reason]
	broken   atomic.Pointer[[]Reason]
	warnings []Reason
	metrics  *prometheus.Registry
	client   *http.Client
	end      func() error
}

const endWithin = 300 * time.Millisecond

func open(t *testing.T) *port {
	t.Helper()
	p := &port{t: t, metrics: prometheus.NewRegistry(), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	p.notYet.Store(&[]Reason{})
	p.broken.Store(&[]Reason{})
	var err error
	p.server, err = Listen(t.Context(), Config{
		Listen: "127.0.0.1:0", Metrics: p.metrics, Log: zap.NewNop(), EndWithin: endWithin,
		NotReady: func() []Reason { return *p.notYet.Load() }, Broken: func() []Reason { return *p.broken.Load() }, Warnings: func() []Reason { return p.warnings },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.server.Run(ctx) }()
	var ended bool
	p.end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { require.NoError(t, p.end()) })
	return p
}

// said is a response.
type said struct {
	code   int
	header http.Header
	body   string
}

func (p *port) get(method, path string) said {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.server.Addr().String()+path, nil)
	require.NoError(p.t, err)
	answer, err := p.client.Do(r)
	require.NoError(p.t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.NoError(p.t, answer.Body.Close())
	return said{answer.StatusCode, answer.Header, string(body)}
}

func TestReadinessSaysWhyNot(t *testing.T) {
	p := open(t)
	answer := p.get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusOK, answer.code)
	require.JSONEq(t, `{"ready":true,"reasons":[]}`, answer.body)

	p.notYet.Store(&[]Reason{
		{Reason: "gap", Partition: "points/3", What: "events are <gone>", Remedy: "restore a backup"},
		{Reason: "joining", What: "outside", Remedy: "wait"},
	})
	answer = p.get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, answer.code)
	require.Equal(t, "application/json", answer.header.Get("Content-Type"))
	require.Equal(t, "no-store", answer.header.Get("Cache-Control"))
	var h struct {
		Ready   bool
		Reasons []map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(answer.body), &h))
	require.False(t, h.Ready)
	require.Equal(t, []map[string]string{
		{"reason": "gap", "partition": "points/3", "what": "events are <gone>", "remedy": "restore a backup"},
		{"reason": "joining", "what": "outside", "remedy": "wait"},
	}, h.Reasons, "a reason of the process has no partition")
	require.Contains(t, answer.body, "\n  ", "people read it, too")
	require.Contains(t, answer.body, "<gone>")
}

// Only requests from this machine see the addresses of Kafka and Redis, and paths.
func TestOtherMachinesAndPagesSeeNoDetails(t *testing.T) {
	reasons := []Reason{{Reason: "redis", Cause: "kafka", Partition: "points/3", What: "can't connect to Redis at 10.1.2.3:6379", Remedy: "see 10.1.2.3"}}
	h := handler(Config{
		NotReady: func() []Reason { return reasons }, Broken: func() []Reason { return reasons }, Metrics: prometheus.NewRegistry(), Log: zap.NewNop(),
		Warnings: func() []Reason { return []Reason{{Reason: "tokens", What: "/etc/tokens", Remedy: "correct it"}} },
	})
	for name, c := range map[string]struct {
		peer, host, forwarded string
		details               bool
	}{
		"this machine":                  {"127.0.0.1:5000", "127.0.0.1:8080", "", true},
		"this machine by IPv6":          {"[::1]:5000", "localhost:8080", "", true},
		"this machine by its IPv6 name": {"[::ffff:127.0.0.1]:5000", "[::1]:8080", "", true},
		"another machine":               {"10.0.0.1:5000", "10.0.0.2:8080", "", false},
		"a proxy on this machine":       {"127.0.0.1:5000", "127.0.0.1:8080", "10.0.0.1", false},
		"a page of another name":        {"127.0.0.1:5000", "evil.example:8080", "", false},
		"what has no address":           {"@", "localhost", "", false},
	} {
		for _, path := range []string{"/readyz", "/healthz"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr, r.Host = c.peer, c.host
			if c.forwarded != "" {
				r.Header.Set("X-Forwarded-For", c.forwarded)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			for _, detail := range []string{"10.1.2.3", "remedy\":"} {
				require.Equal(t, c.details, strings.Contains(w.Body.String(), detail), "%s: %s", name, w.Body)
			}
			require.Equal(t, !c.details, strings.Contains(w.Body.String(), "consumer healthcheck --ready"), name)
			require.Contains(t, w.Body.String(), `"cause": "kafka"`)
			require.Contains(t, w.Body.String(), `"partition": "points/3"`)
			require.Equal(t, c.details && path == "/readyz", strings.Contains(w.Body.String(), "/etc/tokens"), name)
		}
	}
	require.NotEmpty(t, reasons[0].What, "it isn't changed for others")
}

func TestALoopbackAddressIsForNoOtherHost(t *testing.T) {
	for _, c := range []struct {
		listen  string
		guarded bool
		host    string
		status  int
	}{
		{"127.0.0.1:0", true, "localhost", http.StatusOK},
		{"127.0.0.1:0", true, "LOCALHOST.:80", http.StatusOK},
		{"127.0.0.1:0", true, "127.0.0.1:80", http.StatusOK},
		{"127.0.0.1:0", true, "[::1]", http.StatusOK},
		{"127.0.0.1:0", true, "boards.example:443", http.StatusOK},
		{"127.0.0.1:0", true, "Boards.example", http.StatusOK},
		{"127.0.0.1:0", true, "evil.example", http.StatusForbidden},
		{"127.0.0.1:0", true, "127.0.0.1.evil.example:80", http.StatusForbidden},
		{"127.0.0.1:0", true, "localhost.evil.example", http.StatusForbidden},
		{"127.0.0.1:0", false, "evil.example", http.StatusOK},
		{":0", true, "evil.example", http.StatusOK},
	} {
		s, err := Open(t.Context(), Port{
			Name: "port", Listen: c.listen, Connections: 2, EndWithin: time.Second, Log: zap.NewNop(), Guarded: c.guarded, Hosts: []string{"boards.example"},
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		_, port, err := net.SplitHostPort(s.Addr().String())
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port, nil)
		require.NoError(t, err)
		r.Host = c.host
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, c.status, answer.StatusCode, "%+v", c)
		cancel()
		require.NoError(t, <-done)
	}
}

// A warning does not keep clients from this process.
func TestAWarningLeavesTheProcessReady(t *testing.T) {
	p := open(t)
	p.warnings = []Reason{{Reason: "tokens", What: "line 2 isn't a name and a token", Remedy: "put the file right"}}
	answer := p.get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusOK, answer.code)
	require.JSONEq(t, `{"ready":true,"reasons":[],"warnings":[{"reason":"tokens","what":"line 2 isn't a name and a token","remedy":"put the file right"}]}`, answer.body)
	p.notYet.Store(&[]Reason{{Reason: "redis"}})
	answer = p.get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, answer.code)
	require.Contains(t, answer.body, "line 2 isn't")
}

func TestHealthIsNotReadiness(t *testing.T) {
	p := open(t)
	p.notYet.Store(&[]Reason{{Reason: "gap"}})
	answer := p.get(http.MethodGet, "/healthz")
	require.Equal(t, http.StatusOK, answer.code, "a restart mends no gap")
	require.JSONEq(t, `{"healthy":true,"reasons":[]}`, answer.body)
	p.broken.Store(&[]Reason{{Reason: "stuck", Partition: "points/0", What: "it hangs", Remedy: "restart it"}})
	answer = p.get(http.MethodGet, "/healthz")
	require.Equal(t, http.StatusServiceUnavailable, answer.code)
	require.Contains(t, answer.body, `"healthy": false`)
}

func TestMetricsAreThoseOfTheRegistryAlone(t *testing.T) {
	p := open(t)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "some_total", Help: "some"})
	p.metrics.MustRegister(c)
	c.Add(3)
	answer := p.get(http.MethodGet, "/metrics")
	require.Equal(t, http.StatusOK, answer.code)
	require.Contains(t, answer.body, "some_total 3\n")
	require.NotContains(t, answer.body, "go_goroutines", "that is in the default registry")
}

func TestOnlyReadingIsAllowed(t *testing.T) {
	p := open(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		answer := p.get(http.MethodPost, path)
		require.Equal(t, http.StatusMethodNotAllowed, answer.code, path)
		answer = p.get(http.MethodHead, path)
		require.Equal(t, http.StatusOK, answer.code, path)
	}
	answer := p.get(http.MethodGet, "/debug/pprof/")
	require.Equal(t, http.StatusNotFound, answer.code)
}

func TestAPortThatIsTakenIsAnErrorThatSaysSo(t *testing.T) {
	p := open(t)
	_, err := Listen(t.Context(), Config{Listen: p.server.Addr().String(), Log: zap.NewNop()})
	require.ErrorContains(t, err, "open the operations port "+p.server.Addr().String())
	require.ErrorContains(t, err, "another process uses this port; set listen to a free one, or to off")
}

// A client that sends its request byte by byte does not delay shutdown.
func TestTheEndWaitsForNobodyForLong(t *testing.T) {
	p := open(t)
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.server.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, slow.Close()) }()
	_, err = slow.Write([]byte("GET /readyz HT"))
	require.NoError(t, err)
	_ = p.get(http.MethodGet, "/healthz") // by now the server has accepted the slow connection
	began := time.Now()
	require.NoError(t, p.end())
	// By default, net/http closes such a connection only after five seconds.
	require.Less(t, time.Since(began), 15*endWithin)
	_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", p.server.Addr().String())
	require.Error(t, err, "nobody listens any more")
}

func TestALongHeaderIsRefused(t *testing.T) {
	p := open(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.server.Addr().String()+"/readyz", bytes.NewReader(nil))
	require.NoError(t, err)
	r.Header.Set("X-Long", strings.Repeat("x", 4*maxHeader))
	answer, err := p.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
}
