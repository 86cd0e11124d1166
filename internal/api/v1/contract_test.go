package v1

// These tests validate every request and response against openapi.json. A documented response that no test has
// received is a failure.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/test/testenv"
)

// contract is the document, and the responses that tests have received.
var contract = struct {
	doc    *openapi3.T
	router routers.Router

	mu  sync.Mutex
	met map[string]bool // keys: operation and status
}{met: map[string]bool{}}

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	loader := openapi3.NewLoader()
	if contract.doc, err = loader.LoadFromData(Document); err == nil {
		err = contract.doc.Validate(loader.Context)
	}
	if err == nil {
		contract.router, err = gorillamux.NewRouter(contract.doc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi.json:", err)
		os.Exit(1)
	}
	for _, kind := range []string{"text/csv", "application/x-ndjson"} {
		openapi3filter.RegisterBodyDecoder(kind, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			text, err := io.ReadAll(body)
			return string(text), err
		})
	}
	openapi3filter.RegisterBodyDecoder(streamType, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		text, err := io.ReadAll(body)
		return string(text), errors.Join(err, checkEvents(text))
	})
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" {
		code = unmet()
	}
	if code == 0 {
		if err := goleak.Find(testenv.LeakOptions()...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const streamType = "text/event-stream"

// checkEvents validates the data of events against their schemas.
func checkEvents(stream []byte) error {
	events, err := parseEvents(bytes.NewReader(stream))
	if err != nil {
		return err
	}
	for _, e := range events {
		if e == (sent{name: "heartbeat", data: "{}"}) {
			continue
		}
		schema := map[string]string{live.Snapshot: "StreamSnapshot", live.Change: "StreamChange", live.Problem: "Problem"}[e.name]
		if schema == "" {
			return fmt.Errorf("there is no event %q", e.name)
		}
		var data any
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			return fmt.Errorf("%s: %w", e.data, err)
		}
		if err := contract.doc.Components.Schemas[schema].Value.VisitJSON(data); err != nil {
			return fmt.Errorf("%s: %w", e.data, err)
		}
	}
	return nil
}

// untilEvent records a response and cancels its request once it contains an event. A stream would not end
// otherwise.
type untilEvent struct {
	*httptest.ResponseRecorder
	giveUp func()
}

// Flush is called after each event.
func (u *untilEvent) Flush() {
	u.ResponseRecorder.Flush()
	if bytes.Contains(u.Body.Bytes(), []byte("event: ")) {
		u.giveUp()
	}
}

// unmet prints the documented statuses that no test has received.
func unmet() (code int) {
	for path, item := range contract.doc.Paths.Map() {
		for method, o := range item.Operations() {
			for status := range o.Responses.Map() {
				if key := o.OperationID + " " + status; !contract.met[key] {
					fmt.Fprintf(os.Stderr, "no test has met %s %s: %s\n", method, path, key)
					code = 1
				}
			}
		}
	}
	return code
}

func TestTheDocumentHasTheOperationsThatThereAre(t *testing.T) {
	type place struct{ id, method, path string }
	var documented, served []place
	for path, item := range contract.doc.Paths.Map() {
		for method, o := range item.Operations() {
			documented = append(documented, place{o.OperationID, method, path})
			var of []string
			for _, p := range o.Parameters {
				if p.Value.In == "query" {
					of = append(of, p.Value.Name)
				}
			}
			at := slices.IndexFunc(operations, func(s operation) bool { return s.id == o.OperationID })
			require.GreaterOrEqual(t, at, 0, o.OperationID)
			require.ElementsMatch(t, of, operations[at].parameters, o.OperationID)
		}
	}
	for _, o := range operations {
		served = append(served, place{o.id, o.method, o.path})
	}
	require.ElementsMatch(t, documented, served)
}

func TestTheDocumentHasEveryStateAndStyle(t *testing.T) {
	of := func(schema, property string) []any {
		return contract.doc.Components.Schemas[schema].Value.Properties[property].Value.Enum
	}
	require.ElementsMatch(t, of("Status", "state"), []any{"lost", "empty", "backup", "archived", "refilling", "incomplete", "stalled", "lagging", "current"})
}

// said is a response.
type said struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request, and validates it and its response against the document. A violation does not end the
// caller, which may be a goroutine that its test waits for.
func ask(t testing.TB, h http.Handler, r *http.Request) said {
	t.Helper()
	var sent []byte
	if r.Body != nil {
		var err error
		sent, err = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		if err != nil { // the handler must see the same error
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(err)))
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w := &untilEvent{httptest.NewRecorder(), cancel}
	h.ServeHTTP(w, r.WithContext(ctx))
	got := w.Result()
	body, err := io.ReadAll(got.Body)
	assert.NoError(t, err)
	assert.NoError(t, got.Body.Close())
	a := said{got.StatusCode, got.Header, body}
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodDelete {
		return a
	}
	route, parameters, err := contract.router.FindRoute(r)
	if err != nil {
		assert.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMovedPermanently, http.StatusTemporaryRedirect}, a.status, "%s %s: %v", r.Method, r.URL, err)
		return a
	}
	contract.mu.Lock()
	contract.met[route.Operation.OperationID+" "+fmt.Sprint(a.status)] = true
	contract.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(sent))
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	wrong := openapi3filter.ValidateRequest(r.Context(), in)
	if a.status < 400 {
		assert.NoError(t, wrong, "the request isn't one by the document, and is answered")
	}
	if a.header.Get("Content-Encoding") != "" || a.status == http.StatusNotModified {
		return a
	}
	assert.NoError(t, openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(body)), Options: in.Options,
	}), "%s %s: %d\n%s", r.Method, r.URL, a.status, body)
	return a
}

func TestEveryProblemIsExplained(t *testing.T) {
	h := New(Config{Requests: 4, Streams: 4, Metrics: NewMetrics(), Log: nopLog})
	for _, word := range slices.Sorted(maps.Keys(statuses)) {
		a := ask(t, h, httptest.NewRequest(http.MethodGet, "/v1/problems/"+word, nil))
		require.Equal(t, http.StatusOK, a.status)
		require.Contains(t, string(a.body), http.StatusText(statuses[word]))
	}
	require.Equal(t, http.StatusNotFound, ask(t, h, httptest.NewRequest(http.MethodGet, "/v1/problems/nothing", nil)).status)
}
