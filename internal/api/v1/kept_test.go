package v1

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// reported makes a worker report that it is up to date, with a time in the future: a report expires after seconds,
// and on a busy machine a test's requests can take longer.
func (f *fixture) reported() {
	f.t.Helper()
	now, err := f.client.Time(f.t.Context()).Result()
	require.NoError(f.t, err)
	now = now.Add(time.Minute)
	text, err := json.Marshal(workers.Line{Owner: "me", State: workers.StateRunning, At: now, Written: now.UnixMilli(), Lag: new(int64)})
	require.NoError(f.t, err)
	for _, s := range f.boards.Shards() {
		require.NoError(f.t, f.client.HSet(f.t.Context(), s.Keys().Workers(), "points/0", text).Err())
	}
}

// counts sets the partition's position on every shard.
func (f *fixture) counts(offset int64) {
	f.t.Helper()
	for _, s := range f.boards.Shards() {
		require.NoError(f.t, f.client.HSet(f.t.Context(), s.Keys().Ledger(), "points/0", strconv.FormatInt(offset, 10)).Err())
	}
}

// sealed marks global's window as final with a revision on the given shards, or on all; revision 0 reopens it.
func (f *fixture) sealed(revision int, shards ...int) {
	f.t.Helper()
	for i, s := range f.boards.Shards() {
		if len(shards) > 0 && i != shards[0] {
			continue
		}
		l := ranking.Listing{
			Window: ledger.Window{Start: f.window.Start, End: f.window.End}, Final: int64(revision), Expires: f.window.End + int64(24*time.Hour/time.Millisecond),
		}
		require.NoError(f.t, f.client.HSet(f.t.Context(), s.Keys().Windows(), "global:weekly:"+f.window.Name, l.Text()).Err())
	}
}

// named returns the path of global's window by its own name.
func (f *fixture) named(rest string) string {
	return "/v1/boards/global/periods/weekly/windows/" + f.window.Name + rest
}

// aboutAWindow has the requests whose responses may be cached.
var aboutAWindow = []string{"", "/standings?limit=3", "/around?member=u1", "/around?member=nobody&if_missing=top", "/members/u1", "/members/nobody", "/rank?points=1", "/rank?percent=50", "/export", "/export?format=csv"}

// otherwise returns the Cache-Control of a response that must not be cached.
func otherwise(path string) string {
	if strings.HasPrefix(path, "/export") {
		return "no-store"
	}
	return "no-cache"
}

func TestAnAnswerIsKeptWhereNoEventCanChangeItsWindowAnyMore(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		f.crowd(30)
		f.reported()
		every := func(cache func(string) string) {
			t.Helper()
			for _, path := range aboutAWindow {
				require.Equal(t, cache(path), f.get(f.named(path)).header.Get("Cache-Control"), path)
			}
		}
		every(otherwise)
		if of > 1 {
			f.sealed(1, 0)
			every(otherwise) // the other shards' parts still accept events
			require.False(t, read[windowOnly](f, f.named("")).Status.Final)
		}
		f.sealed(1)
		every(func(string) string { return "public, max-age=3600, immutable" })
		is := read[standingsAnswer](f, f.named("/standings?limit=3")).Status
		require.True(t, is.Final)
		require.EqualValues(t, 1, is.Revision)

		for _, path := range aboutAWindow { // current names another window next week
			require.Equal(t, otherwise(path), f.get(w("global")+path).header.Get("Cache-Control"), path)
		}
		next := read[standingsAnswer](f, w("global")+"/standings").Next
		require.Equal(t, "no-cache", f.get(w("global")+"/standings", "cursor", *next).header.Get("Cache-Control"))
		require.Equal(t, "public, max-age=3600, immutable", f.get(f.named("/standings"), "cursor", *next).header.Get("Cache-Control"))
		for _, offset := range []string{"points/0@9", "points/0@10"} { // the first one counts, the second does not
			require.Equal(t, "no-cache", f.get(f.named("/standings"), "min_offset", offset, "wait_ms", "0").header.Get("Cache-Control"))
		}
		require.Equal(t, "no-cache", f.get("/v1/boards/global/periods/weekly/windows").header.Get("Cache-Control"))
		require.Equal(t, "no-cache", f.get("/v1/members/u1?boards=global").header.Get("Cache-Control"))
		require.Equal(t, "no-store", f.get(f.named("/around?member=nobody")).header.Get("Cache-Control"))

		f.sealed(0)
		every(otherwise)
		f.sealed(2)
		every(func(string) string { return "public, max-age=3600, immutable" })
		require.EqualValues(t, 2, read[windowOnly](f, f.named("")).Status.Revision)
		require.NoError(t, f.client.Del(t.Context(), f.boards.Shards()[0].Keys().Workers()).Err())
		every(otherwise) // no report: the consumers may be behind
	}
}

// If a token is required, no proxy may cache a response for other clients, and no browser for the next token.
func TestAnAnswerThatNeedsATokenIsKeptForThatTokenAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("shop 0123456789abcdef\n"), 0o600))
	tokens, err := OpenTokens(path)
	require.NoError(t, err)
	f := newFixture(t, 1, codec.Readable, func(c *Config, _ *reading.Config) { c.Tokens = tokens })
	f.crowd(30)
	f.reported()
	f.sealed(1)
	for _, path := range aboutAWindow {
		r := httptest.NewRequest(http.MethodGet, f.named(path), nil)
		require.Contains(t, ask(t, f, r).header.Values("Vary"), "Authorization", "who has none learns that others do")
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		a := ask(t, f, r)
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, "private, max-age=3600, immutable", a.header.Get("Cache-Control"), path)
		require.Contains(t, a.header.Values("Vary"), "Authorization")
	}
}

// The ETag of a final window stays the same while the ledger advances with events of other windows. A 304 extends
// the cache's copy.
func TestAFinalWindowIsTheSameUntilItIsReopened(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		f.crowd(30)
		f.reported()
		again := func(path, tag string) said {
			r := httptest.NewRequest(http.MethodGet, f.named(path), nil)
			r.Header.Set("If-None-Match", tag)
			return ask(t, f, r)
		}
		for _, path := range aboutAWindow[:8] { // an export has no ETag
			f.sealed(1)
			tag := f.get(f.named(path)).header.Get("ETag")
			f.counts(11)
			a := again(path, tag)
			require.Equal(t, http.StatusNotModified, a.status, path)
			require.Equal(t, "public, max-age=3600, immutable", a.header.Get("Cache-Control"))
			f.sealed(2)
			require.Equal(t, http.StatusOK, again(path, tag).status, "%s has another revision", path)
			f.sealed(0)
			tag = f.get(f.named(path)).header.Get("ETag")
			f.counts(12)
			require.Equal(t, http.StatusOK, again(path, tag).status, "%s isn't final, and more counts", path)
			f.counts(10)
		}
	}
}

// reopening reopens the window once the first page is on its way.
type reopening struct {
	*httptest.ResponseRecorder
	f *fixture
}

// Write is called for each page.
func (r *reopening) Write(b []byte) (int, error) {
	r.f.sealed(0)
	return r.ResponseRecorder.Write(b)
}

// A cacheable export that would mix rows of two revisions is cut off.
func TestAnExportThatMayBeKeptIsOfOneRevision(t *testing.T) {
	for _, kept := range []bool{true, false} {
		f := newFixture(t, 1, codec.Readable)
		path := f.named("/export")
		if !kept {
			path = w("global") + "/export" // current names another window next week
		}
		f.crowd(2100)
		f.reported()
		f.sealed(1)
		serve := func() {
			f.ServeHTTP(&reopening{httptest.NewRecorder(), f}, httptest.NewRequest(http.MethodGet, path, nil))
		}
		if kept {
			require.PanicsWithValue(t, http.ErrAbortHandler, serve)
		} else {
			require.NotPanics(t, serve)
		}
	}
}
