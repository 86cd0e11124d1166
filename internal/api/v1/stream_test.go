package v1

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/api/v1/live"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// serve serves a fixture on a port, and returns a function that dials it.
func (f *fixture) serve() func() (net.Conn, error) {
	server := httptest.NewServer(f)
	f.t.Cleanup(server.CloseClientConnections)
	f.t.Cleanup(func() { go server.Close() })
	return func() (net.Conn, error) { return net.Dial("tcp", server.Listener.Addr().String()) }
}

// After each event, the rows of a client that follows a stream equal those of a new read.
func TestAStreamShowsWhatAFreshReadShows(t *testing.T) {
	testenv.SlowEmbedded(t)
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		dial := f.serve()
		luck := rand.New(rand.NewPCG(7, uint64(of)))
		move := func() {
			for range 1 + luck.IntN(4) {
				id := fmt.Sprintf("u%d", luck.IntN(40))
				f.put("global", f.standing("global", id, luck.Int64N(9), luck.Int64N(20)))
				f.put("arena", f.standing("arena", id, luck.Int64N(9), luck.Int64N(20), luck.Int64N(3)))
			}
		}
		for range 3 {
			move()
		}
		type view struct {
			*viewer
			fresh func() []standing
		}
		var views []view
		for _, board := range []string{"global", "arena"} {
			for _, ranks := range []string{ordinal, competition, modified} {
				views = append(views, view{
					openStream(t, dial, w(board)+"/stream?limit=7&ranks="+ranks),
					func() []standing {
						return read[standingsAnswer](f, w(board)+"/standings", "limit", "7", "ranks", ranks).Standings
					},
				}, view{
					openStream(t, dial, w(board)+"/stream?member=u1&n=2&ranks="+ranks),
					func() []standing {
						a := f.get(w(board)+"/around", "member", "u1", "n", "2", "ranks", ranks)
						if a.status == http.StatusNotFound {
							return []standing{}
						}
						return decode[aroundAnswer](t, a.body).Standings
					},
				})
			}
		}
		for range 8 {
			move()
			for _, v := range views {
				want := byRank(v.fresh())
				v.until(func() bool { return len(v.events) > 0 && slices.EqualFunc(want, v.shown(), sameStanding) })
			}
		}
		for _, v := range views {
			require.Equal(t, live.Snapshot, v.events[0])
			require.NotContains(t, v.events[1:], live.Snapshot, "what changes is sent as a change")
		}
	})
}

func sameStanding(a, b standing) bool { return fmt.Sprint(show(a)) == fmt.Sprint(show(b)) }

// show returns a row's values without pointers.
func show(s standing) []any {
	points := int64(0)
	if s.Points != nil {
		points = *s.Points
	}
	return []any{*s.Rank, s.Member, points, string(s.Fields), *s.ReachedAt}
}

func TestAStreamRefusesWhatIsNoRequest(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	for _, c := range []struct {
		path      string
		query     []string
		status    int
		parameter string
		says      string
	}{
		{w("global"), []string{"limit", "0"}, 400, "limit", "from 1 to 100"},
		{w("global"), []string{"limit", "101"}, 400, "limit", "from 1 to 100"},
		{w("global"), []string{"limit", "5", "member", "u1"}, 400, "limit", "excludes member"},
		{w("global"), []string{"n", "5"}, 400, "n", "requires member"},
		{w("global"), []string{"member", "u1", "n", "51"}, 400, "n", "from 0 to 50"},
		{w("global"), []string{"member", ""}, 400, "member", "256"},
		{w("global"), []string{"member", strings.Repeat("x", 257)}, 400, "member", "256"},
		{w("global"), []string{"ranks", "dense"}, 400, "ranks", "modified"},
		{w("global"), []string{"interval_ms", "99"}, 400, "interval_ms", "from 100 to 60000"},
		{w("global"), []string{"interval_ms", "60001"}, 400, "interval_ms", "from 100 to 60000"},
		{w("global"), []string{"offset", "3"}, 400, "offset", "interval_ms"},
		{"/v1/boards/global/periods/weekly/windows/2026-W54", nil, 404, "window", "current or previous"},
		{"/v1/boards/global/periods/monthly/windows/current", nil, 404, "period", "no period"},
		{w("a%20b"), nil, 404, "board", "isn't a board's name"},
	} {
		a := f.get(c.path+"/stream", c.query...)
		require.Equal(t, c.status, a.status, "%s %v: %s", c.path, c.query, a.body)
		p := decode[problem](t, a.body)
		require.Equal(t, c.parameter, p.Parameter, "%s %v: %s", c.path, c.query, a.body)
		require.Contains(t, p.Detail, c.says, "%s %v", c.path, c.query)
	}
}

func TestAStreamSaysHowItIsToBePassedOn(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	v := openStream(t, f.serve(), w("global")+"/stream", "Accept-Encoding", "gzip")
	h := v.answer.Header
	require.Equal(t, http.StatusOK, v.answer.StatusCode)
	require.Equal(t, streamType, h.Get("Content-Type"))
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	require.Equal(t, "no", h.Get("X-Accel-Buffering"))
	require.Empty(t, h.Get("Content-Encoding"))
	require.Equal(t, live.Snapshot, v.next())
	require.Regexp(t, `^[2-5]\d\d\d$`, v.retry)
	require.Empty(t, v.shown(), "nobody has come yet")

	f.put("global", f.standing("global", "a\ndata: x\r\n\r\n\u2028", 0, 5))
	require.Equal(t, live.Change, v.next())
	require.Equal(t, "a\ndata: x\r\n\r\n\u2028", v.shown()[0].Member)
}
