package v1

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/simulate/redissim"
)

// No request makes the API fail. For any path, query and body the API answers, names the error and the valid
// values, or reports that nothing is found.
func FuzzNoRequestMakesTheAPIFail(f *testing.F) {
	for _, path := range []string{"/v1/boards", "/v1/boards/global/periods/weekly/windows/current/standings", "/v1/members/u1", "/", "/v1/boards/global/periods/weekly/windows/current/members/lookup", "/v1/boards/global/periods/weekly/windows/current/rank", "/v1/boards/global/periods/weekly/windows/previous/stream"} {
		for _, query := range []string{"", "limit=3&offset=1", "cursor=AQ", "ranks=dense", "member=u1&n=500", "min_points=-9223372036854775808", "min_offset=points/0@9&wait_ms=0", "points=1&n=3", "percent=0.0001", "boards=a,b&periods=weekly", "fields=a:1", "member=u1&n=0&interval_ms=60000", "member=%0a%0adata:&ranks=modified", "%", "a=b;c"} {
			f.Add(http.MethodGet, path, query, "")
		}
	}
	f.Add(http.MethodPost, "/v1/boards/global/periods/weekly/windows/current/members/lookup", "", `{"members":["u1","nobody"]}`)
	server := redissim.New(time.Now)
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{"redis:6379"}, Timeout: time.Minute, Network: server.Dialer("fuzz")}).(*redis.Client)
	f.Cleanup(func() {
		_ = client.Close() // no call is in flight
		server.Close()
	})
	api := fixtureOn(f, client, "fuzz", 3, codec.Readable)
	api.crowd(30)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.Contains(query, "wait_ms") && !strings.Contains(query, "wait_ms=0") {
			return // such a request would wait
		}
		u, err := url.ParseRequestURI("http://localhost" + path)
		if err != nil {
			return // no client can send it
		}
		u.RawQuery = query
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return // no client can send it
		}
		r.URL = u
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		w := &untilEvent{httptest.NewRecorder(), cancel}
		api.ServeHTTP(w, r.WithContext(ctx))
		require.NoError(t, checkIfStream(w), "%s %s?%s", method, path, query)
		require.Less(t, w.Code, 500, "%s %s?%s: %s", method, path, query, w.Body)
	})
}

// checkIfStream validates a response that is a stream. No member id can inject lines into it.
func checkIfStream(w *untilEvent) error {
	if w.Header().Get("Content-Type") != streamType {
		return nil
	}
	return checkEvents(w.Body.Bytes())
}

// The API accepts only cursors that it could have created.
func FuzzACursorIsOneOfOursOrRefused(f *testing.F) {
	var calendar periods.Calendar
	window, err := calendar.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(f, err)
	target := reading.Target{Board: "global", Period: reading.Period{Rule: periods.BuiltIn(periods.Weekly, calendar)}, Window: window}
	for _, pivot := range []ranking.Pivot{{Score: 3.5, Member: "u1"}, {Score: math.Inf(-1), Member: "\x00"}, {Member: strings.Repeat("x", 256)}} {
		c := cursor{board: "global", window: window, pivot: pivot, dense: 300}
		f.Add(c.String())
	}
	f.Add("")
	f.Add("AQAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := parseCursor(text, target); ok {
			require.Equal(t, text, c.String())
		}
	})
}
