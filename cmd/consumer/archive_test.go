package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
)

// verified is the JSON of archive verify.
type verified struct {
	Verified, Differ int64
	Copies           []struct {
		Redis             string
		Stored            *string
		Hidden, Different int64
		Differences       []struct {
			Member  string
			Archive *int64 `json:"archive_place"`
			Redis   *int64 `json:"redis_place"`
		}
	}
}

// archived is a final window of 2,500 members in three shards in Redis, and its archived copy.
type archived struct {
	*clitest.Standings
	path   string
	window periods.Window
}

func newArchived(t *testing.T) *archived {
	t.Helper()
	w := &archived{Standings: clitest.StandingsIn(t, 3, 0), path: filepath.Join(t.TempDir(), "archive.db")}
	w.Environ = append(w.Environ, "STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL=sqlite:"+w.path)
	var members []ledger.Member
	for i := range 2500 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), int64(i/2), "2100-03-09T08:15:30.123Z"))
	}
	for from := 0; from < len(members); from += 500 {
		w.AddTo(t, clitest.Window, "global", members[from:from+500]...)
	}
	var err error
	w.window, err = new(periods.BuiltIn(periods.Weekly, w.Reader.Calendar)).Named(clitest.Window)
	require.NoError(t, err)
	for _, s := range w.Shards { // mark it final, as sealing does
		name := "global:weekly:" + clitest.Window
		text, err := w.Reader.Client.HGet(t.Context(), s.Keys().Windows(), name).Result()
		require.NoError(t, err)
		l, err := ranking.ParseListing(name, text)
		require.NoError(t, err)
		l.Final = 1
		require.NoError(t, w.Reader.Client.HSet(t.Context(), s.Keys().Windows(), name, l.Text()).Err())
	}
	b, err := w.Reader.Boards.Top(t.Context(), "global", w.window, 0, 5000)
	require.NoError(t, err)
	require.EqualValues(t, 1, b.Revision)
	var rows []store.Row
	for _, st := range b.Standings {
		r := store.Row{Place: st.Rank, Rank: st.Rank, Member: st.Member, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
		r.Tuple[0] = st.Points
		rows = append(rows, r)
	}
	s, err := store.Open(t.Context(), "sqlite:"+w.path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Migrate(t.Context()))
	for _, revision := range []int64{0, 1} {
		copied := store.Window{
			Board: "global", Period: "weekly", Name: clitest.Window, Start: time.UnixMilli(w.window.Start), End: time.UnixMilli(w.window.End), Revision: revision,
			AsOf: time.UnixMilli(w.window.End), Zone: "UTC", Tick: b.Tick, Ledger: b.Beside.Ledger, Members: b.Members,
		}
		if revision == 0 {
			copied.Name = "2100-W11"
		} else {
			copied.SealedAt = copied.AsOf
		}
		writing, err := s.Begin(t.Context(), store.Fence{Token: 1, Owner: "tests"}, copied)
		require.NoError(t, err)
		require.NoError(t, writing.Append(t.Context(), rows))
		require.NoError(t, writing.Finish(t.Context()))
	}
	return w
}

func (w *archived) verify(t *testing.T, args ...string) (code int, r verified, stderr string) {
	t.Helper()
	code, stdout, stderr := execute(t, w.Environ, append([]string{"archive", "verify", "--json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), "code %d: %s%s", code, stdout, stderr)
	return code, r, stderr
}

func TestACopyIsComparedWithWhatWasWrittenAndWithRedis(t *testing.T) {
	w := newArchived(t)
	code, r, stderr := w.verify(t)
	require.Equal(t, 0, code, stderr)
	require.EqualValues(t, 2, r.Verified)
	require.Zero(t, r.Differ)
	require.Equal(t, "same", r.Copies[0].Redis)
	require.Equal(t, "not_compared", r.Copies[1].Redis, "the backup")

	code, stdout, stderr := execute(t, w.Environ, "archive", "list")
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `global  weekly  2100-W10  1 .* 2,500\nglobal  weekly  2100-W11  backup .* 2,500\n\n2 copies\n`, stdout)
	code, stdout, _ = execute(t, w.Environ, "archive", "list", "--board", "eu")
	require.Equal(t, 0, code)
	require.Equal(t, "The archive has no such window.\n", stdout)
	code, _, stderr = execute(t, w.Environ, "archive", "verify", "global", "weekly", "2099-W01")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the archive has no copy of global weekly 2099-W01")

	// A member who was banned after the copy was taken is not a difference.
	require.NoError(t, ranking.BanEach(t.Context(), w.Shards, ranking.Ban{Board: "global", Member: "m1200"}, (*ranking.Store).Ban))
	code, r, stderr = w.verify(t, "global", "weekly", clitest.Window)
	require.Equal(t, 0, code, stderr)
	require.EqualValues(t, 1, r.Verified)
	require.EqualValues(t, 1, r.Copies[0].Hidden)
	require.Equal(t, "same", r.Copies[0].Redis)

	// Redis has lost a row and changed another.
	name := "global:weekly:" + clitest.Window
	for _, s := range w.Shards {
		keys := s.Keys()
		require.NoError(t, w.Reader.Client.ZRem(t.Context(), keys.Listed(name), "m2499").Err())
		if n, err := w.Reader.Client.ZScore(t.Context(), keys.Listed(name), "m100").Result(); err == nil {
			require.NoError(t, w.Reader.Client.ZIncrBy(t.Context(), keys.Listed(name), 5-float64(int64(n)), "m100").Err())
		}
	}
	code, r, stderr = w.verify(t)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "1 of 2 copies differ")
	c := r.Copies[0]
	require.Equal(t, "differs", c.Redis)
	require.Nil(t, c.Stored)
	require.EqualValues(t, 3, c.Different, "who is gone, and m100, where they were and where they are")
	first := c.Differences[0]
	require.Equal(t, "m2499", first.Member)
	require.EqualValues(t, 1, *first.Archive)
	require.Nil(t, first.Redis)
	require.Equal(t, "m100", c.Differences[1].Member)

	code, stdout, _ = execute(t, w.Environ, "archive", "verify")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "m2499: place 1 in the archive, no such row in Redis")

	// The archive has other rows than were written.
	db, err := sql.Open("sqlite", "file:"+w.path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `UPDATE standings SET points = points + 1 WHERE rank = 2000`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	code, r, _ = w.verify(t)
	require.Equal(t, 1, code)
	require.EqualValues(t, 2, r.Differ)
	require.Contains(t, *r.Copies[1].Stored, "with checksum")
}

func TestAnArchiveHasToBeConfigured(t *testing.T) {
	for _, command := range []string{"list", "verify", "run"} {
		code, _, stderr := execute(t, nil, "archive", command)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "archive.url is not set")
	}
	environ := []string{"STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL=sqlite:" + filepath.Join(t.TempDir(), "a.db")}
	code, stdout, stderr := execute(t, environ, "archive", "list")
	require.Equal(t, 0, code, stderr)
	require.True(t, strings.HasPrefix(stdout, "The archive has no such window"), stdout)
}
