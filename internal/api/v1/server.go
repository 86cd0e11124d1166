// Package v1 serves boards as JSON over HTTP, for product teams. openapi.json is its contract; the API serves this
// document, too.
//
//	request ─▶ client (tokens) ─▶ parameters ─▶ body ─▶ place (limits) ─▶ reading ─▶ answer or problem
//	                                                         └─▶ live ─▶ reading, once for many streams
//
// Every answer about a window states the time and the ledger of its read, and whether the window is complete
// (status). Values of one shard are read by one script at one instant. Exceptions are exports and long lookups,
// which are read in parts. Each shard is read at its own instant.
package v1

import (
	"context"
	_ "embed"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/internal/reading"
)

// Document is the contract: OpenAPI 3.1.
//
//go:embed openapi.json
var Document []byte

// Config holds the API's dependencies and settings.
type Config struct {
	Reader *reading.Reader
	// Tokens are the tokens for reading; nil: no token is required.
	Tokens *Tokens
	// Bans configures whether and by whom members can be banned.
	Bans Bans
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Origins are the origins whose pages may read; "*" is any.
	Origins []string
	// Timeout is the maximum duration of a request, without a wait for an event.
	Timeout time.Duration
	// Requests is the maximum number of concurrent reads: limit.go has the other limits.
	Requests int
	// Streams is the maximum number of open streams.
	Streams int
	Metrics *Metrics
	Log     *zap.Logger
}

// api handles all paths.
type api struct {
	Config
	mux    *http.ServeMux
	limits limits
	live   *live.Hub
	log    *zap.Logger // for requests; sampled
}

// API is the handler of all paths.
type API struct {
	http.Handler
	live *live.Hub
}

// EndStreams ends all open streams and refuses new ones. Otherwise the server's shutdown would wait for them.
func (a *API) EndStreams() { a.live.End() }

// Wait waits, after EndStreams, until all reads for streams have ended.
func (a *API) Wait() { a.live.Wait() }

// operation is one method of a path.
type operation struct {
	id, method, path string
	parameters       []string // of the query
	do               func(*api, *request) (*answer, error)
	// bans: the operation is about bans and requires a token for bans.
	bans bool
	// stream writes the response itself, row by row. The response as a whole has no deadline.
	stream func(*api, *request, http.ResponseWriter) error
	// open: the operation requires no token.
	open bool
	// lasts: the response continues while the client stays connected. It has its own limit, and its duration is
	// not observed.
	lasts bool
}

const window = "/v1/boards/{board}/periods/{period}/windows/{window}"

// operations are all operations of the API.
var operations = []operation{
	{id: "listBoards", method: http.MethodGet, path: "/v1/boards", parameters: []string{"limit", "cursor"}, do: (*api).listBoards},
	{id: "listWindows", method: http.MethodGet, path: "/v1/boards/{board}/periods/{period}/windows", parameters: []string{"limit"}, do: (*api).listWindows},
	{id: "getWindow", method: http.MethodGet, path: window, parameters: untilParameters, do: (*api).getWindow},
	{id: "listStandings", method: http.MethodGet, path: window + "/standings", parameters: slices.Concat([]string{"limit", "offset", "from", "cursor", "min_points", "max_points", "ranks"}, untilParameters), do: (*api).listStandings},
	{id: "listAround", method: http.MethodGet, path: window + "/around", parameters: slices.Concat([]string{"member", "n", "if_missing", "ranks"}, untilParameters), do: (*api).listAround},
	{id: "getMember", method: http.MethodGet, path: window + "/members/{member}", parameters: slices.Concat([]string{"ranks", "shadow"}, untilParameters), do: (*api).getMember},
	{id: "lookUpMembers", method: http.MethodPost, path: window + "/members/lookup", parameters: slices.Concat([]string{"ranks"}, untilParameters), do: (*api).lookUpMembers},
	{id: "getRank", method: http.MethodGet, path: window + "/rank", parameters: slices.Concat([]string{"points", "fields", "percent", "n"}, untilParameters), do: (*api).getRank},
	{id: "exportWindow", method: http.MethodGet, path: window + "/export", parameters: []string{"format", "raw"}, stream: (*api).exportWindow},
	{id: "streamWindow", method: http.MethodGet, path: window + "/stream", parameters: []string{"limit", "member", "n", "ranks", "interval_ms"}, stream: (*api).streamWindow, lasts: true},
	{id: "getMemberOfBoards", method: http.MethodGet, path: "/v1/members/{member}", parameters: []string{"boards", "periods", "window", "ranks"}, do: (*api).getMemberOfBoards},
	{id: "listBans", method: http.MethodGet, path: "/v1/bans", parameters: []string{"limit", "cursor", "member"}, bans: true, do: (*api).listBans},
	{id: "ban", method: http.MethodPost, path: "/v1/bans", parameters: []string{"wait_ms"}, bans: true, do: (*api).ban},
	{id: "unban", method: http.MethodDelete, path: "/v1/bans", parameters: []string{"member", "board", "wait_ms"}, bans: true, do: (*api).unban},
	{id: "getOpenAPI", method: http.MethodGet, path: "/v1/openapi.json", open: true, do: (*api).getOpenAPI},
	{id: "getProblem", method: http.MethodGet, path: "/v1/problems/{problem}", do: (*api).getProblem},
}

// New returns the API's handler.
func New(c Config) *API {
	a := &api{Config: c, mux: http.NewServeMux(), limits: newLimits(c.Requests, c.Streams)}
	c.Metrics.streamsMax.Set(float64(c.Streams))
	a.live = live.New(live.Config{Sources: max(1, c.Streams/streamsOfSource), Problem: a.streamProblem, Counted: c.Metrics.streamRead})
	a.log = c.Log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 100)
	}))
	paths := map[string][]operation{}
	for _, o := range operations {
		paths[o.path] = append(paths[o.path], o)
	}
	for path, all := range paths {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, all) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, nil) })
	return &API{a.mux, a.live}
}

// serve answers a request. all are the operations of its path; none if the path is unknown.
func (a *api) serve(w http.ResponseWriter, r *http.Request, all []operation) {
	seen := &seen{ResponseWriter: w, status: http.StatusOK}
	began, holder, o := time.Now(), "", operation{id: "none"}
	defer func() {
		if failure := recover(); failure != nil {
			if failure == http.ErrAbortHandler { //nolint:errorlint,err113 // what net/http compares
				panic(failure)
			}
			a.Log.Error("a request caused a panic", zap.String("operation", o.id), zap.Any("failure", failure), zap.ByteString("stack", debug.Stack()))
			if !seen.begun {
				problemf(internal, "Internal error. The server's log has the cause").write(seen)
			}
		}
		took := time.Since(began)
		a.Metrics.answered(&o, seen.status, took)
		a.log.Info("request", zap.String("operation", o.id), zap.Int("status", seen.status), zap.Duration("took", took),
			zap.Int64("bytes", seen.bytes), zap.String("client", a.clientOf(r, holder)))
	}()
	seen.Header().Set("X-Content-Type-Options", "nosniff")
	if a.crossOrigin(seen, r, all) {
		return
	}
	i := slices.IndexFunc(all, func(o operation) bool {
		return o.method == r.Method || o.method == http.MethodGet && r.Method == http.MethodHead
	})
	switch {
	case len(all) == 0:
		problemf(notFound, "Unknown path %s. See /v1/openapi.json", r.URL.EscapedPath()).write(seen)
		return
	case i < 0:
		seen.Header().Set("Allow", methodsOf(all))
		problemf(notAllowed, "%s allows %s", all[0].path, methodsOf(all)).write(seen)
		return
	}
	o = all[i]
	tokens := a.Tokens
	switch {
	case o.open:
		tokens = nil
	case o.bans:
		if p := a.Bans.off(); p != nil {
			p.write(seen)
			return
		}
		tokens = a.Bans.Tokens
	}
	var p *problem
	if tokens != nil {
		seen.Header().Add("Vary", "Authorization") // a cached response is valid only for this token
		if holder, p = tokens.holder(r); p != nil {
			p.write(seen)
			return
		}
	}
	if err := a.do(seen, r, &o, holder); err != nil {
		a.refuse(seen, &o, err)
	}
}

// do parses a request, takes a place in its limit, and answers it.
func (a *api) do(w *seen, r *http.Request, o *operation, holder string) error {
	q, err := newRequest(r, o, a.clientOf(r, holder))
	if err != nil {
		return err
	}
	q.holder = holder
	done, err := a.readBody(q, o, w)
	if err != nil {
		return err
	}
	defer done()
	leave, err := a.take(a.limits.place(o, q), q.client, 1)
	if err != nil {
		return err
	}
	defer leave()
	if o.stream != nil {
		return o.stream(a, q, w)
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.Timeout+q.wait)
	defer cancel()
	q.ctx = ctx
	answer, err := o.do(a, q)
	if err != nil {
		return err
	}
	return answer.write(w, r)
}

// take takes n from a limit, and counts a refusal.
func (a *api) take(l *limit, client string, n int64) (give func(), err error) {
	give, p := l.take(client, n)
	if p != nil {
		return nil, a.Metrics.refused(l.of, p)
	}
	return give, nil
}

// refuse answers with the problem for an error. Errors that the client did not cause are logged.
func (a *api) refuse(w *seen, o *operation, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && p.word != boardLost && p.word != overloaded {
		a.log.Warn("couldn't answer a request", zap.String("operation", o.id), zap.Error(err))
	}
	if w.begun {
		panic(http.ErrAbortHandler) // part of the response is sent: the client must see that it is cut off
	}
	p.write(w)
}

func methodsOf(all []operation) string {
	var methods []string
	for _, o := range all {
		if methods = append(methods, o.method); o.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return strings.Join(append(methods, http.MethodOptions), ", ")
}

// seen records the response's status and length.
type seen struct {
	http.ResponseWriter
	begun  bool
	status int
	bytes  int64
}

// WriteHeader records the status.
func (s *seen) WriteHeader(status int) {
	s.begun, s.status = true, status
	s.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (s *seen) Write(b []byte) (int, error) {
	s.begun = true
	n, err := s.ResponseWriter.Write(b)
	s.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
