package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// onBoth runs a test on an empty database of each kind.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteURL(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, testenv.Postgres(t)) })
}

func sqliteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
}

// onBothMigrated is onBoth with an open store and the schema.
func onBothMigrated(t *testing.T, test func(t *testing.T, s *Store, url string)) {
	t.Helper()
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		require.NoError(t, s.Migrate(t.Context()))
		test(t, s, url)
	})
}

func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

var (
	week  = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	first = Fence{1, "first"}
)

// final returns a final window with the given number of members.
func final(members int64) Window {
	return Window{
		Board: "global", Period: "weekly", Name: "2026-W47", Start: week, End: week.AddDate(0, 0, 7), Revision: 1,
		AsOf: week.AddDate(0, 0, 8).Add(123 * time.Millisecond), SealedAt: week.AddDate(0, 0, 8), Zone: "Europe/Berlin",
		Tick: 10 * time.Millisecond, Ledger: map[string]string{"events/0": "480", "events/1": "120..480@8f3c"},
		Incomplete: []string{"events/1"}, Members: members,
	}
}

// backup returns a backup of the same window, taken the given number of minutes after its start.
func backup(members, minutes int64) Window {
	w := final(members)
	w.Revision, w.SealedAt, w.AsOf = 0, time.Time{}, week.Add(time.Duration(minutes)*time.Minute)
	return w
}

// ranked returns the rows from rank first to last. Every third row has the score of the row above.
func ranked(first, last int64) []Row {
	rows := make([]Row, 0, last-first+1)
	for rank := first; rank <= last; rank++ {
		points := 1_000_000 - rank + rank%3
		rows = append(rows, Row{
			Place: rank, Rank: rank, Member: fmt.Sprintf("m%d", rank*7919%1_000_003), Tuple: codec.Tuple{points},
			Score: float64(1_000_000-rank/3) + 0.125, ReachedAt: week.UnixMilli() + rank*1001,
		})
	}
	return rows
}

// archived writes a complete copy.
func archived(t testing.TB, s *Store, f Fence, w Window, rows []Row) Window {
	t.Helper()
	w.Members, w.Hidden = 0, 0
	for i := range rows {
		if rows[i].Rank > 0 {
			w.Members++
		} else {
			w.Hidden++
		}
	}
	writing, err := s.Begin(t.Context(), f, w)
	require.NoError(t, err)
	require.NoError(t, writing.Append(t.Context(), rows))
	require.NoError(t, writing.Finish(t.Context()))
	require.True(t, writing.Whole())
	return writing.Window()
}

// byRank returns the rows that a backup of scanned rows must have: one per member, the last one read.
func byRank(rows []Row) []Row {
	last := map[string]Row{}
	for _, r := range rows {
		last[r.Member] = r
	}
	sorted := slices.SortedFunc(maps.Values(last), func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
	return placed(sorted)
}

// placed sets the rows' places and ranks. A hidden member's rank must be 0 before.
func placed(rows []Row) []Row {
	rank := int64(0)
	for i := range rows {
		if rows[i].Place = int64(i + 1); rows[i].Rank > 0 {
			rank++
			rows[i].Rank = rank
		}
	}
	return rows
}

// hidden makes the rows at some places those of hidden members.
func hidden(rows []Row, places ...int64) []Row {
	for _, place := range places {
		rows[place-1].Rank = 0
	}
	return placed(rows)
}

// tester is a test, a benchmark or one run of a property.
type tester interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// all reads the rows of a complete copy.
func all(t tester, s *Store, id int64) []Row {
	t.Helper()
	var rows []Row
	for row, err := range s.Each(t.Context(), id) {
		require.NoError(t, err)
		rows = append(rows, row)
	}
	return rows
}

func twoFields() []codec.Field {
	return []codec.Field{{Name: "wins", Max: 1000}, {Name: "losses", Max: 1000, Fewest: true}}
}
