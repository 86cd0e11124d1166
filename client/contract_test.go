package client_test

// Requirements on the client: it covers all of openapi.json, and imports only packages that any module can import.

import (
	"context"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/client"
	v1 "github.com/standings/standings/internal/api/v1"
)

// notCovered has the operations without a method of the client, and the reasons.
var notCovered = map[string]string{
	"getOpenAPI": "the client is made by it: who reads the document does so by a generator",
	"getProblem": "a Problem has its title and status already",
	"listBans":   "the client reads boards; who bans has another token, and is mostly a tool of its own",
	"ban":        "see listBans",
	"unban":      "see listBans",
}

// notSent has the parameters that the client does not send, and the reasons.
var notSent = map[string]string{
	"exportWindow format": "rows are read as NDJSON, which says at its end that it is complete",
	"exportWindow raw":    "it is of CSV",
	"listBoards cursor":   "Boards sends it from the second page on: TestBoardsGoOnAfterTheLastOneOfAPage",
}

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(v1.Document)
	require.NoError(t, err)
	return doc
}

// noting sends requests, and records their operations and parameters.
type noting struct {
	t    *testing.T
	find func(*http.Request) string

	mu  sync.Mutex
	met map[string]map[string]bool
}

func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	id := n.find(r)
	n.mu.Lock()
	if n.met[id] == nil {
		n.met[id] = map[string]bool{}
	}
	for name := range r.URL.Query() {
		n.met[id][name] = true
	}
	n.mu.Unlock()
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		n.t.Errorf("%s: %d", r.URL, answer.StatusCode)
	}
	return answer, err
}

func each[T any](t *testing.T, all iter.Seq2[T, error]) (n int) {
	t.Helper()
	for _, err := range all {
		require.NoError(t, err)
		n++
	}
	return n
}

func TestEveryOperationHasAMethodOrAReason(t *testing.T) {
	doc := document(t)
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	n := &noting{t: t, met: map[string]map[string]bool{}, find: func(r *http.Request) string {
		local := r.Clone(r.Context())
		local.URL.Scheme, local.URL.Host = "", ""
		route, _, err := router.FindRoute(local)
		require.NoError(t, err, r.URL)
		return route.Operation.OperationID
	}}
	c, err := client.New(client.Config{BaseURL: baseURL, HTTP: &http.Client{Transport: n}})
	require.NoError(t, err)
	called := callAll(t, c)
	var methods []string
	for m := range reflect.TypeFor[*client.Client]().Methods() {
		methods = append(methods, m.Name)
	}
	require.ElementsMatch(t, methods, called, "a method that isn't called here")
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if notCovered[o.OperationID] != "" {
				require.NotContains(t, n.met, o.OperationID, "it has a method, and a reason not to")
				continue
			}
			if !assertMet(t, n.met, o.OperationID, method, path) {
				continue
			}
			for _, p := range o.Parameters {
				sent := n.met[o.OperationID][p.Value.Name] || notSent[o.OperationID+" "+p.Value.Name] != ""
				if p.Value.In == "query" && !sent {
					t.Errorf("no method sends %s of %s", p.Value.Name, o.OperationID)
				}
			}
		}
	}
}

func assertMet(t *testing.T, met map[string]map[string]bool, id, method, path string) bool {
	t.Helper()
	if met[id] == nil {
		t.Errorf("no method of the client sends %s %s, and no reason says why: %s", method, path, id)
	}
	return met[id] != nil
}

// callAll calls every method with all of its parameters, and returns the methods' names.
func callAll(t *testing.T, c *client.Client) []string {
	t.Helper()
	waits := c.WaitingFor(time.Second, client.Record{Topic: "points", Offset: 48210})
	arena := client.Ref{Board: "arena", Period: "weekly", Window: client.Current}
	points := func(n int64) *int64 { return &n }
	calls := map[string]func(ctx context.Context) error{
		"WaitingFor": func(context.Context) error { return nil },
		"Boards":     func(ctx context.Context) error { require.Equal(t, 2, each(t, c.Boards(ctx))); return nil },
		"Windows":    func(ctx context.Context) error { _, err := c.Windows(ctx, "global", "weekly", 5); return err },
		"Window":     func(ctx context.Context) error { _, err := waits.Window(ctx, weekly); return err },
		"Standings": func(ctx context.Context) error {
			page, err := waits.Standings(ctx, weekly, client.Query{Limit: 2, Offset: 1, MinPoints: points(1), MaxPoints: points(5000), Ranks: client.Modified})
			require.NoError(t, err)
			require.EqualValues(t, 14, *page.InRange)
			page, err = c.Standings(ctx, weekly, client.Query{Cursor: page.NextCursor})
			require.NoError(t, err)
			require.EqualValues(t, 4, page.Standings[0].Rank)
			page, err = c.Standings(ctx, weekly, client.Query{Bottom: true, Limit: 1})
			require.Equal(t, "Lena", page.Standings[0].Member)
			return err
		},
		"All": func(ctx context.Context) error {
			require.Equal(t, 15, each(t, waits.All(ctx, weekly, client.Query{})))
			require.Equal(t, 12, each(t, waits.All(ctx, weekly, client.Query{Offset: 3, Limit: 4})))
			require.Equal(t, 2, each(t, waits.All(ctx, client.Ref{Board: "global", Period: "weekly", Window: client.Previous}, client.Query{})))
			return nil
		},
		"Around": func(ctx context.Context) error {
			_, err := waits.Around(ctx, weekly, "u42", client.AroundQuery{N: 2, IfMissing: "bottom", Ranks: client.Competition})
			return err
		},
		"Member": func(ctx context.Context) error {
			_, err := waits.Member(ctx, arena, "Bo", client.Competition)
			return err
		},
		"Shadow": func(ctx context.Context) error { _, err := waits.Shadow(ctx, weekly, "Bo"); return err },
		"Lookup": func(ctx context.Context) error {
			_, err := waits.Lookup(ctx, weekly, client.Modified, "Bo")
			return err
		},
		"Rank": func(ctx context.Context) error { _, err := waits.Rank(ctx, weekly, -5, 1); return err },
		"RankOfFields": func(ctx context.Context) error {
			r, err := waits.RankOfFields(ctx, arena, map[string]int64{"stage": 42, "revives": 4}, 1)
			require.NoError(t, err)
			require.EqualValues(t, 2, r.Rank)
			return err
		},
		"Best": func(ctx context.Context) error { _, err := waits.Best(ctx, weekly, 12.5); return err },
		"MemberOfBoards": func(ctx context.Context) error {
			m, err := c.MemberOfBoards(ctx, "u42", client.BoardsQuery{Boards: []string{"arena", "global"}, Periods: []string{"weekly"}, Window: client.Previous, Ranks: client.Modified})
			require.NoError(t, err)
			require.EqualValues(t, 2, m.Standings[1].Standing.Rank)
			return err
		},
		"Watch": func(ctx context.Context) error {
			for _, q := range []client.WatchQuery{{Limit: 3, Ranks: client.Competition, Interval: time.Second}, {Member: "Emi", N: 1}} {
				for live, err := range c.Watch(ctx, weekly, q) {
					require.NoError(t, err)
					require.Len(t, live.Standings, 3)
					require.Equal(t, q.Member, live.Member)
					break
				}
			}
			return nil
		},
		"Export": func(ctx context.Context) error { require.Equal(t, 3, each(t, c.Export(ctx, arena))); return nil },
	}
	for name, call := range calls {
		require.NoError(t, call(t.Context()), name)
	}
	return slices.Collect(maps.Keys(calls))
}

// answered maps the schemas of responses to the types that read them.
var answered = map[string]any{
	"Window": client.Window{}, "Status": client.Status{}, "ShardStatus": client.ShardStatus{}, "Standing": client.Standing{},
	"PlacedStanding": client.Standing{}, "Above": client.Above{}, "Page": client.Page{}, "Around": client.Around{},
	"Member": client.Member{}, "MemberOfBoards": client.MemberOfBoards{}, "Found": client.Found{}, "Rank": client.Rank{},
	"Percent": client.Percent{}, "WindowOnly": client.WindowOnly{}, "Board": client.Board{}, "Windows": client.Windows{},
	"Problem": client.Problem{}, "StreamSnapshot": client.Live{},
}

// notRead has the schemas without a type of the client, and the reasons.
var notRead = map[string]string{
	"Lookup":       "it is sent",
	"Boards":       "Boards reads it page by page",
	"StreamChange": "Watch puts it into Live",
	"ProblemType":  notCovered["getProblem"],
	"Ban":          notCovered["ban"],
	"Banned":       notCovered["ban"],
	"BanRecord":    notCovered["listBans"],
	"Bans":         notCovered["listBans"],
}

func TestEveryPropertyOfAnAnswerIsRead(t *testing.T) {
	for name, schema := range document(t).Components.Schemas {
		if notRead[name] == "" {
			require.Contains(t, answered, name)
			properties(t, name, schema, reflect.TypeOf(answered[name]))
		}
	}
}

// properties compares a type with a schema, including nested ones.
func properties(t *testing.T, name string, schema *openapi3.SchemaRef, of reflect.Type) {
	t.Helper()
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(of) {
		if tag := f.Tag.Get("json"); tag != "" && tag != "-" && !f.Anonymous {
			fields[tag] = f.Type
		}
	}
	for property, s := range schema.Value.Properties {
		field, ok := fields[property]
		if !ok {
			t.Errorf("no field reads %s of %s", property, name)
			continue
		}
		if s.Value.Items != nil {
			require.Equal(t, reflect.Slice, field.Kind(), "%s of %s", property, name)
			s, field = s.Value.Items, field.Elem()
		}
		if s.Ref == "" && len(s.Value.Properties) > 0 {
			properties(t, name+"."+property, s, field)
		}
	}
	for tag := range fields {
		// Standing is used for the schema PlacedStanding, too, which has a place.
		if schema.Value.Properties[tag] == nil && tag != "place" {
			t.Errorf("%s has no %s, which %s has", name, tag, of)
		}
	}
}

func TestWhatTheClientImportsIsForEveryone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	n := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			host, _, _ := strings.Cut(imported, "/")
			require.True(t, !strings.Contains(host, ".") || imported == "github.com/cenkalti/backoff/v4", "%s imports %s", path, imported)
			n++
		}
	}
	require.Positive(t, n)
}
