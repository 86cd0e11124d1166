package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Any request gets a response that such a request may have. A server error occurs only if the process itself
// reports that it is not healthy or not ready.
func FuzzNoRequestMakesTheProcessFail(f *testing.F) {
	for _, text := range []string{
		"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /readyz?x=%zz&y=;a HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n",
		"HEAD /readyz HTTP/1.0\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, zstd;q=0.5\r\nAccept: application/openmetrics-text;version=1.0.0;q=1,*/*;q=0.1\r\n\r\n",
		"GET /metrics?name[]=a&collect[]=%00 HTTP/1.1\r\nHost: a\r\nX-Prometheus-Scrape-Timeout-Seconds: -1\r\n\r\n",
		"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz",
		"GET /healthz/../readyz HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET //metrics%2f HTTP/1.1\r\nHost: a\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
		"GET http://b/readyz HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
		"TRACE /debug/pprof/profile?seconds=30 HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "some_total", Help: "some"}))
	bad := false
	state := func() []Reason {
		if bad {
			return []Reason{{Reason: "gap", Partition: "points/3", What: "events are <gone>", Remedy: "restore a backup"}}
		}
		return nil
	}
	h := handler(Config{NotReady: state, Warnings: state, Broken: state, Metrics: metrics, Log: zap.NewNop()})
	f.Fuzz(func(t *testing.T, text []byte, isBad bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return // the server itself answers such a request
		}
		bad = isBad
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		told := slices.Contains([]string{"/healthz", "/readyz"}, r.URL.Path) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
		mayFail := told && isBad && w.Code == http.StatusServiceUnavailable
		switch {
		case told && (w.Code == http.StatusOK) == isBad, w.Code >= 500 && !mayFail:
			t.Errorf("%q is answered with %d while bad is %v: %s", text, w.Code, isBad, w.Body)
		case told:
			var body health
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Reasons) > 0 != isBad {
				t.Errorf("%q is answered with %s: %v", text, w.Body, err)
			}
		case w.Code == http.StatusOK && r.URL.Path != "/metrics":
			t.Errorf("%q is answered with %s", text, w.Body)
		}
	})
}
