package v1

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/reading"
)

func TestWhoeverHasAnAnswerIsToldThatItStillHolds(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		f.crowd(20)
		for _, path := range []string{w("global"), w("global") + "/standings", w("global") + "/members/u1", w("global") + "/around?member=u1", w("global") + "/rank?points=1", "/v1/boards", "/v1/openapi.json"} {
			tag := f.get(path).header.Get("ETag")
			require.NotEmpty(t, tag, path)
			for held, status := range map[string]int{tag: http.StatusNotModified, `"x", ` + tag: http.StatusNotModified, "*": http.StatusNotModified, `W/"0"`: http.StatusOK} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Header.Set("If-None-Match", held)
				a := ask(t, f, r)
				require.Equal(t, status, a.status, path)
				require.Equal(t, status == http.StatusNotModified, len(a.body) == 0)
				require.Equal(t, tag, a.header.Get("ETag"))
			}
		}
		tag := f.get(w("global") + "/standings").header.Get("ETag")
		f.put("global", f.standing("global", "u1", 0, 500))
		require.NotEqual(t, tag, f.get(w("global")+"/standings").header.Get("ETag"))
	}
}

func TestAnAnswerSaysWhenTheConsumersReported(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		f.crowd(3)
		reportedAt := func() *string {
			var a struct{ Status status }
			require.NoError(t, json.Unmarshal(f.get(w("global")+"/standings").body, &a))
			return a.Status.ReportedAt
		}
		require.Nil(t, reportedAt(), "none has")
		f.reported()
		line, err := f.client.HGet(t.Context(), f.boards.Shards()[0].Keys().Workers(), "points/0").Result()
		require.NoError(t, err)
		var l workers.Line
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		require.Equal(t, timeMS(l.Written), *reportedAt())
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, timeMS(l.Written), *reportedAt())
	}
}

func TestALongAnswerIsCompressedForWhoTakesThat(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	f.crowd(60)
	plain := f.get(w("global")+"/standings", "limit", "50")
	for header, compressed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "*": true, "gzip;q=0": false, "br": false, "": false} {
		r := httptest.NewRequest(http.MethodGet, w("global")+"/standings?limit=50", nil)
		r.Header.Set("Accept-Encoding", header)
		a := ask(t, f, r)
		require.Equal(t, compressed, a.header.Get("Content-Encoding") == "gzip", header)
		require.Contains(t, a.header.Values("Vary"), "Accept-Encoding")
		body := a.body
		if compressed {
			z, err := gzip.NewReader(bytes.NewReader(a.body))
			require.NoError(t, err)
			body, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		require.Equal(t, decode[standingsAnswer](t, plain.body).Standings, decode[standingsAnswer](t, body).Standings)
	}
}

func TestAnExportHasEveryRowAndSaysWhereItEnds(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(2100)
		lines := bytes.Split(bytes.TrimSpace(f.get(w("global")+"/export").body), []byte("\n"))
		var got []standing
		for _, line := range lines[:len(lines)-1] {
			got = append(got, decode[standing](t, line))
		}
		require.Len(t, got, len(all))
		for i := range all {
			require.Equal(t, all[i].Member, got[i].Member)
			require.Equal(t, int64(i+1), *got[i].Rank)
		}
		end := decode[exportEnd](t, lines[len(lines)-1])
		require.True(t, end.End)
		require.Equal(t, int64(2100), end.Rows)

		text, err := csv.NewReader(bytes.NewReader(f.get(w("global")+"/export", "format", "csv").body)).ReadAll()
		require.NoError(t, err)
		require.Equal(t, []string{"rank", "member", "name", "points", "reached_at"}, text[0])
		require.Len(t, text, 2101)
		require.Equal(t, all[2099].Member, text[2100][1])
	})
	f := newFixture(t, 1, codec.Readable)
	require.Equal(t, http.StatusNotFound, f.get("/v1/boards/global/periods/no/windows/current/export").status)

	f.crowd(2100)
	whole, calls := f.get(f.named("/export?format=csv")), new(scripts)
	f.client.AddHook(calls)
	head := ask(t, f, httptest.NewRequest(http.MethodHead, f.named("/export?format=csv"), nil))
	require.Equal(t, http.StatusOK, head.status)
	require.Equal(t, whole.header, head.header)
	require.Empty(t, head.body)
	require.EqualValues(t, 1, calls.calls.Load(), "the window's rows aren't read")
}

// A member id may be any text, and people open exports in a spreadsheet or a terminal.
func TestNoIDIsAFormulaOrCanNotBeSeenInAnExport(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	ids := []string{`=HYPERLINK("http://a")`, "@SUM(1)", "+1", "-1", "\t=1", "\r=1", "＝1", "'quoted", "a=1", "u\u202e1\u009b"}
	for i, id := range ids {
		f.put("global", f.standing("global", id, 0, int64(100-i)))
	}
	column := func(query ...string) (all []string) {
		text, err := csv.NewReader(bytes.NewReader(f.get(w("global")+"/export", query...).body)).ReadAll()
		require.NoError(t, err)
		for _, line := range text[1:] {
			all = append(all, line[1])
		}
		return all
	}
	escaped := column("format", "csv")
	require.Len(t, escaped, len(ids))
	for i, id := range ids {
		if i < 8 {
			id = "'" + id
		}
		require.Equal(t, id, escaped[i])
	}
	require.Equal(t, ids, column("format", "csv", "raw", "1"))
	require.Equal(t, http.StatusBadRequest, f.get(w("global")+"/export", "raw", "1").status)

	lines := f.get(w("global") + "/export").body
	require.Contains(t, string(lines), `"u\u202e1\u009b"`)
	require.Equal(t, ids[9], decode[standing](t, bytes.Split(lines, []byte("\n"))[9]).Member)
}

func TestBoardsAndWindowsAreListed(t *testing.T) {
	f := newFixture(t, 3, codec.Readable)
	require.Empty(t, read[boardsList](f, "/v1/boards").Boards)
	f = newFixture(t, 3, codec.Readable)
	f.crowd(20)
	f.put("arena", f.standing("arena", "a", 0, 7, 1))
	f.put("zoo", f.standing("global", "a", 0, 7))
	b := read[boardsList](f, "/v1/boards", "limit", "2")
	require.Equal(t, "zoo", read[boardsList](f, "/v1/boards", "cursor", *b.Next).Boards[0].Board)
	require.Equal(t, []boardAnswer{
		{"arena", "best", []fieldAnswer{{"stage", 999, "most"}, {"revives", 99, "fewest"}}, []periodAnswer{{Period: "weekly", Windows: 1, First: f.window.Name, Last: f.window.Name}}, false},
		{"global", "sum", []fieldAnswer{{"points", maxPoints, "most"}}, []periodAnswer{{Period: "weekly", Windows: 1, First: f.window.Name, Last: f.window.Name}}, false},
	}, b.Boards)
	all := read[windowsAnswer](f, "/v1/boards/global/periods/weekly/windows")
	require.Equal(t, f.window.Name, *all.Current)
	require.NotNil(t, all.Previous)
	require.Len(t, all.Windows, 1)
	require.Equal(t, int64(20), *all.Windows[0].Members)
	require.True(t, all.Windows[0].Current)
	require.Positive(t, all.Windows[0].SecondsLeft)
}

// readings returns the operations for readers: bans_test.go covers those for bans.
func readings() []operation {
	return slices.DeleteFunc(slices.Clone(operations), func(o operation) bool { return o.bans })
}

// sound returns a request to an operation that succeeds if the period is weekly.
func (f *fixture) sound(o operation, period string) *http.Request {
	path := strings.NewReplacer("{board}", "global", "{period}", period, "{window}", f.window.Name, "{member}", "u1", "{problem}", "internal").Replace(o.path)
	r := httptest.NewRequest(o.method, path, strings.NewReader(`{"members":["a"]}`))
	r.Header.Set("Content-Type", "application/json")
	switch o.id {
	case "listAround":
		r.URL.RawQuery = "member=u1"
	case "getRank":
		r.URL.RawQuery = "points=1"
	case "getMemberOfBoards":
		r.URL.RawQuery = "boards=global&periods=" + period
	}
	return r
}

func TestEveryOperationIsAnsweredOrSaysWhatThereIs(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	f.crowd(5)
	for _, o := range readings() {
		require.Equal(t, http.StatusOK, ask(t, f, f.sound(o, "weekly")).status, o.id)
		if strings.Contains(o.path, "{period}") || o.id == "getMemberOfBoards" {
			a := ask(t, f, f.sound(o, "hourly"))
			require.Equal(t, http.StatusNotFound, a.status, o.id)
			require.Equal(t, []string{"weekly"}, decode[problem](t, a.body).There)
		}
		r := f.sound(o, "weekly")
		r.Method = http.MethodHead
		if o.method == http.MethodGet {
			require.Equal(t, http.StatusOK, ask(t, f, r).status, o.id)
		}
		r = f.sound(o, "weekly")
		r.URL.RawQuery += "&x=1"
		require.Equal(t, http.StatusBadRequest, ask(t, f, r).status, o.id)
	}
}

func TestTokensAreNeededWhereThereAreSome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("# pages\nshop  0123456789abcdef\n")
	tokens, err := OpenTokens(path)
	require.NoError(t, err)
	core, logged := observer.New(zap.DebugLevel)
	f := newFixture(t, 1, codec.Readable, func(c *Config, _ *reading.Config) { c.Tokens, c.Log = tokens, zap.New(core) })
	with := func(header string) said {
		r := httptest.NewRequest(http.MethodGet, w("global")+"/standings", nil)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		return ask(t, f, r)
	}
	require.Equal(t, http.StatusOK, with("Bearer 0123456789abcdef").status)
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef", "0123456789abcdef"} {
		a := with(header)
		require.Equal(t, http.StatusUnauthorized, a.status, header)
		require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
	}
	for _, o := range readings() { // every operation but one: anyone may read the document
		want := http.StatusUnauthorized
		if o.id == "getOpenAPI" {
			want = http.StatusOK
		}
		require.Equal(t, want, ask(t, f, f.sound(o, "weekly")).status, o.id)
	}

	write("shop 0123456789abcdeX\n")
	tokens.mu.Lock()
	tokens.looked = time.Time{}
	tokens.mu.Unlock()
	require.Equal(t, http.StatusOK, with("Bearer 0123456789abcdeX").status)
	require.Equal(t, http.StatusUnauthorized, with("Bearer 0123456789abcdef").status)
	require.NoError(t, tokens.Err())

	write("shop short\n") // the tokens read before stay valid
	tokens.mu.Lock()
	tokens.looked = time.Time{}
	tokens.mu.Unlock()
	require.Equal(t, http.StatusOK, with("Bearer 0123456789abcdeX").status)
	require.ErrorContains(t, tokens.Err(), "line 1")

	write("shop 0123456789abcdeY\n") // size and modification time stay equal
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, tokens.Look())
	write("shop 0123456789abcdeZ\n")
	require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	require.NoError(t, tokens.Look())
	require.Equal(t, http.StatusOK, with("Bearer 0123456789abcdeZ").status)
	require.Equal(t, http.StatusUnauthorized, with("Bearer 0123456789abcdeY").status)
	for says, take := range map[string]func(){
		"all clients are refused": func() { write("# nobody\n") },
		"no such file":            func() { require.NoError(t, os.Remove(path)) },
	} {
		write("shop 0123456789abcdeZ\n")
		require.NoError(t, tokens.Look())
		take()
		require.ErrorContains(t, tokens.Look(), says)
		require.Equal(t, http.StatusUnauthorized, with("Bearer 0123456789abcdeZ").status, says)
	}
	for _, entry := range logged.All() {
		text, err := json.Marshal(entry.ContextMap())
		require.NoError(t, err)
		require.NotContains(t, string(text)+entry.Message, "0123456789abcde")
	}
	for text, says := range map[string]string{"": "no token", "a b c": "line 1", "\n\nname short": "line 3", "x " + strings.Repeat("a", 15): "16 characters"} {
		write(text)
		_, err := OpenTokens(path)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "short")
	}
}

func TestOtherOriginsReadWhereTheyAreNamed(t *testing.T) {
	f := newFixture(t, 1, codec.Readable, func(c *Config, _ *reading.Config) { c.Origins = []string{"https://shop.example"} })
	for origin, allowed := range map[string]bool{"https://shop.example": true, "https://evil.example": false, "null": false, "": false} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			r := httptest.NewRequest(method, w("global"), nil)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			r.Header.Set("Access-Control-Request-Method", http.MethodGet)
			a := ask(t, f, r)
			want := ""
			if allowed {
				want = origin
			}
			require.Equal(t, want, a.header.Get("Access-Control-Allow-Origin"))
			require.Contains(t, a.header.Values("Vary"), "Origin")
			if method == http.MethodOptions {
				require.Equal(t, http.StatusNoContent, a.status)
				require.Equal(t, allowed, a.header.Get("Access-Control-Allow-Methods") != "")
			}
		}
	}
}

// held blocks calls to Redis until release is closed.
type held struct {
	entered chan struct{}
	release chan struct{}
	fail    error
}

func (h *held) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *held) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.entered <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		if h.fail != nil {
			cmd.SetErr(h.fail)
			return h.fail
		}
		return next(ctx, cmd)
	}
}
func (h *held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestWhatIsBeyondTheLimitIsToldToComeAgain(t *testing.T) {
	f := newFixture(t, 1, codec.Readable, func(c *Config, _ *reading.Config) { c.Requests = 4 })
	h := &held{entered: make(chan struct{}, 100), release: make(chan struct{})}
	f.client.AddHook(h)
	from := func(address string) said {
		r := httptest.NewRequest(http.MethodGet, "/v1/boards/global/periods/weekly/windows/"+f.window.Name, nil)
		r.RemoteAddr = address
		return ask(t, f, r)
	}
	var all sync.WaitGroup
	for i, address := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1", "10.0.0.3:1"} {
		if i == 2 { // this client has used its half
			a := from("10.0.0.1:3")
			require.Equal(t, http.StatusTooManyRequests, a.status)
			require.Equal(t, "1", a.header.Get("Retry-After"))
			for _, o := range readings() { // every operation
				r := f.sound(o, "weekly")
				r.RemoteAddr = "10.0.0.1:4"
				if o.id != "getOpenAPI" && o.id != "getProblem" && o.stream == nil { // these have limits of their own
					require.Equal(t, http.StatusTooManyRequests, ask(t, f, r).status, o.id)
				}
			}
		}
		all.Go(func() { from(address) })
		<-h.entered
	}
	a := from("10.0.0.4:1")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Contains(t, string(a.body), "the limit is 4")
	close(h.release)
	all.Wait()
	require.Equal(t, http.StatusOK, from("10.0.0.1:4").status)
	require.InDelta(t, 5, testutil.ToFloat64(f.config.Metrics.requests.WithLabelValues("getWindow", "200")), 0)
	require.InDelta(t, 2, testutil.ToFloat64(f.config.Metrics.requests.WithLabelValues("getWindow", "429")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(f.config.Metrics.shed.WithLabelValues("requests", "all")), 0)
	refused := 0.0
	for _, o := range operations {
		refused += testutil.ToFloat64(f.config.Metrics.requests.WithLabelValues(o.id, "429"))
	}
	require.InDelta(t, refused, testutil.ToFloat64(f.config.Metrics.shed.WithLabelValues("requests", "client")), 0)
}

func TestARedisThatIsAwayIsAProblemThatSaysNothingOfItself(t *testing.T) {
	for name, c := range map[string]struct {
		fail   error
		slow   bool
		status int
	}{
		"refused": {fail: io.ErrUnexpectedEOF, status: http.StatusServiceUnavailable},
		"slow":    {slow: true, status: http.StatusGatewayTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			core, logged := observer.New(zap.WarnLevel)
			f := newFixture(t, 1, codec.Readable, func(cfg *Config, _ *reading.Config) {
				cfg.Log = zap.New(core)
				if c.slow {
					cfg.Timeout = 20 * time.Millisecond
				}
			})
			h := &held{entered: make(chan struct{}, 1000), release: make(chan struct{}), fail: c.fail}
			if !c.slow {
				close(h.release)
			}
			f.client.AddHook(h)
			for _, o := range readings() {
				if o.id == "getOpenAPI" || o.id == "getProblem" || o.lasts {
					continue // a stream reports the problem after it has opened
				}
				a := ask(t, f, f.sound(o, "weekly"))
				require.Equal(t, c.status, a.status, "%s: %s", o.id, a.body)
				require.NotContains(t, string(a.body), "EOF")
				require.NotContains(t, string(a.body), "127.0.0.1")
			}
			require.NotEmpty(t, logged.All(), "the log says why")
		})
	}
}

func TestALostBoardIsAProblem(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	f.crowd(5)
	require.NoError(t, f.client.Del(t.Context(), f.boards.Shards()[0].Keys().Listed("global:weekly:"+f.window.Name)).Err())
	for _, path := range []string{"/standings", "/members/u1", "/around?member=u1", "/rank?points=3", "/rank?percent=3", "/export"} {
		a := f.get(w("global") + path)
		require.Equal(t, http.StatusServiceUnavailable, a.status, path)
		require.Contains(t, decode[problem](t, a.body).Detail, "board_lost")
	}
	require.Equal(t, "lost", read[windowOnly](f, w("global")).Status.State)
}

// A reader that has published an event either sees it, or learns that it is not counted yet.
func TestAReaderWaitsForTheirOwnEvent(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		f.crowd(5)
		reached := func(at, wait string) bool {
			return *read[standingsAnswer](f, w("global")+"/standings", "min_offset", at, "wait_ms", wait).Status.Reached
		}
		require.True(t, reached("points/0@9", "0"))
		require.False(t, reached("points/0@10", "0"))
		require.False(t, reached("points/1@0", "0"))
		require.Nil(t, read[standingsAnswer](f, w("global")+"/standings").Status.Reached)
		var counted sync.WaitGroup
		counted.Go(func() {
			for _, s := range f.boards.Shards() {
				if err := f.client.HSet(context.WithoutCancel(t.Context()), s.Keys().Ledger(), "points/0", "12").Err(); err != nil {
					t.Error(err)
				}
			}
		})
		require.True(t, reached("points/0@11", "10000"))
		counted.Wait()
	}
}
