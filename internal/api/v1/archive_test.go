package v1

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/reading"
)

// withArchive returns an API with an archive. The archive has the window of the week before last of the board
// global, with three members, and of the board old, which Redis does not have.
func withArchive(t *testing.T, of func(*store.Store) func(context.Context) (*store.Store, error)) (f *fixture, window string) {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "archive.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	f = newFixture(t, 2, codec.Readable, func(_ *Config, r *reading.Config) {
		r.Archive = &reading.Archive{Open: of(s), Timeout: 20 * time.Second, Reads: 4}
	})
	start := f.window.Start - 14*dayMS
	past, _, err := f.config.Reader.Periods[0].Rule.At(start)
	require.NoError(t, err)
	for _, board := range []string{"global", "old"} {
		w := store.Window{
			Board: board, Period: "weekly", Name: past.Name, Start: time.UnixMilli(past.Start), End: time.UnixMilli(past.End), Revision: 2,
			AsOf: time.UnixMilli(past.End), SealedAt: time.UnixMilli(past.End), Zone: "UTC", Tick: 10 * time.Millisecond,
			Ledger: map[string]string{"points/0": "10"}, Members: 3,
		}
		var rows []store.Row
		for i, member := range []string{"c", "b", "a"} {
			r := store.Row{Place: int64(i + 1), Rank: int64(i + 1), Member: member, Score: float64(7 - i/2), ReachedAt: past.Start}
			r.Tuple[0] = int64(7 - i/2)
			rows = append(rows, r)
		}
		writing, err := s.Begin(t.Context(), store.Fence{Token: 1, Owner: "tests"}, w)
		require.NoError(t, err)
		require.NoError(t, writing.Append(t.Context(), rows))
		require.NoError(t, writing.Finish(t.Context()))
	}
	f.put("global", f.standing("global", "now", 0, 3))
	return f, past.Name
}

func there(s *store.Store) func(context.Context) (*store.Store, error) {
	return func(context.Context) (*store.Store, error) { return s, nil }
}

func TestAPastWindowIsAnsweredFromTheArchiveByEveryOperation(t *testing.T) {
	f, name := withArchive(t, there)
	at := "/v1/boards/global/periods/weekly/windows/" + name
	page := read[standingsAnswer](f, at+"/standings", "ranks", "competition", "limit", "2")
	require.True(t, page.Status.Final)
	require.EqualValues(t, 2, page.Status.Revision)
	require.Equal(t, page.Window.End, *page.Status.AsOf)
	require.Equal(t, "archived", page.Status.State)
	require.Equal(t, map[string]string{"points/0": "10"}, page.Status.Ledger)
	require.Equal(t, []int64{1, 1}, []int64{*page.Standings[0].Rank, *page.Standings[1].Rank})
	require.Equal(t, "c", page.Standings[0].Member)
	next := read[standingsAnswer](f, at+"/standings", "cursor", *page.Next)
	require.Equal(t, "a", next.Standings[0].Member)
	require.EqualValues(t, 3, *next.Standings[0].Rank)
	dense := read[standingsAnswer](f, at+"/standings", "ranks", "dense", "limit", "1")
	dense = read[standingsAnswer](f, at+"/standings", "ranks", "dense", "cursor", *dense.Next)
	require.Equal(t, []int64{1, 2}, []int64{*dense.Standings[0].Rank, *dense.Standings[1].Rank})
	require.EqualValues(t, 2, *read[standingsAnswer](f, at+"/standings", "min_points", "7").InRange)
	require.Equal(t, "archived", read[windowOnly](f, at).Status.State)
	require.EqualValues(t, 2, *read[memberAnswer](f, at+"/members/b").Standing.Rank)
	require.Len(t, read[aroundAnswer](f, at+"/around", "member", "c", "n", "1").Standings, 3)
	require.EqualValues(t, 3, read[rankAnswer](f, at+"/rank", "points", "7").Rank)
	require.EqualValues(t, 2, read[percentAnswer](f, at+"/rank", "percent", "50").Rank)
	require.Contains(t, string(f.get(at+"/export").body), `{"end":true,"rows":3,`)
	require.Contains(t, string(f.get(at+"/stream").body), `"state":"archived"`)
	tag := f.get(at + "/standings").header.Get("ETag")
	require.Equal(t, tag, f.get(at+"/standings").header.Get("ETag"), "nothing has changed")
	require.Equal(t, "current", stateBut(read[standingsAnswer](f, w("global")+"/standings").Status))
}

func TestListsHaveWhatIsArchived(t *testing.T) {
	f, name := withArchive(t, there)
	all := read[windowsAnswer](f, "/v1/boards/global/periods/weekly/windows")
	require.Len(t, all.Windows, 2)
	require.Equal(t, f.window.Name, all.Windows[0].Window)
	require.False(t, all.Windows[0].Archived)
	require.Equal(t, name, all.Windows[1].Window)
	require.True(t, all.Windows[1].Archived)
	require.EqualValues(t, 3, *all.Windows[1].Members)
	require.Len(t, read[windowsAnswer](f, "/v1/boards/global/periods/weekly/windows", "limit", "1").Windows, 1)

	first := read[boardsList](f, "/v1/boards", "limit", "1")
	require.Equal(t, "global", first.Boards[0].Board)
	require.False(t, first.Boards[0].Archived)
	require.Equal(t, periodAnswer{Period: "weekly", Windows: 1, Archived: 1, First: name, Last: f.window.Name}, first.Boards[0].Periods[0])
	second := read[boardsList](f, "/v1/boards", "cursor", *first.Next)
	require.Equal(t, "old", second.Boards[0].Board)
	require.True(t, second.Boards[0].Archived)
	require.Equal(t, periodAnswer{Period: "weekly", Archived: 1, First: name, Last: name}, second.Boards[0].Periods[0])
	require.Nil(t, second.Next)
}

func TestAnArchiveThatIsAwayIsAProblemOfPastWindowsAlone(t *testing.T) {
	f, name := withArchive(t, func(*store.Store) func(context.Context) (*store.Store, error) {
		return func(context.Context) (*store.Store, error) { return nil, errors.New("password of secret refused") }
	})
	a := f.get("/v1/boards/global/periods/weekly/windows/" + name + "/standings")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	p := decode[problem](t, a.body)
	require.Equal(t, "/v1/problems/archive-unavailable", p.Type)
	require.NotContains(t, p.Detail, "secret")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Len(t, read[standingsAnswer](f, w("global")+"/standings").Standings, 1)
	all := read[windowsAnswer](f, "/v1/boards/global/periods/weekly/windows")
	require.Len(t, all.Windows, 1)
	require.True(t, all.NoArchive)
	require.True(t, read[boardsList](f, "/v1/boards").NoArchive)
}
