package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWindowsAreListedTheLatestFirst(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		var latest []Window // the newest copy of each board and week
		for week := range 3 {
			for _, board := range []string{"a", "b"} {
				of := func(w Window) Window {
					w.Board, w.Name = board, fmt.Sprintf("w%d", week)
					w.Start, w.End = w.Start.AddDate(0, 0, 7*week), w.End.AddDate(0, 0, 7*week)
					return w
				}
				newest := archived(t, s, first, of(backup(0, 1)), ranked(1, 3))
				if week < 2 {
					archived(t, s, first, of(final(0)), ranked(1, 4))
					second := of(final(0))
					second.Revision = 2
					newest = archived(t, s, first, second, ranked(1, 5))
				}
				latest = append([]Window{newest}, latest...)
			}
		}
		begun, err := s.Begin(t.Context(), first, func() Window { w := final(3); w.Board = "c"; return w }())
		require.NoError(t, err)

		list := func(f Filter, after Place, limit int) []Window {
			windows, err := s.Windows(t.Context(), f, after, limit)
			require.NoError(t, err)
			return windows
		}
		require.Equal(t, latest, list(Filter{Newest: true}, Place{}, 100))
		var paged []Window
		for after := (Place{}); ; {
			page := list(Filter{Newest: true}, after, 4)
			if paged = append(paged, page...); len(page) < 4 {
				break
			}
			after = page[3].Place()
		}
		require.Equal(t, latest, paged)
		require.Equal(t, []Window{latest[0], latest[1]}, list(Filter{Backups: true}, Place{}, 100))
		require.Len(t, list(Filter{}, Place{}, 100), 10)
		require.Len(t, list(Filter{All: true}, Place{}, 100), 21, "with the backups that Sweep removes, each as it was read too, and the copy that was begun")
		require.Equal(t, []Window{latest[3]}, list(Filter{Board: "a", Period: "weekly", Name: "w1", Newest: true}, Place{}, 100))
		require.Empty(t, list(Filter{Board: "a", Period: "monthly"}, Place{}, 100))
		require.Equal(t, latest[2:4], list(Filter{Newest: true, From: week.AddDate(0, 0, 7), To: week.AddDate(0, 0, 14)}, Place{}, 100))

		got, err := s.ByID(t.Context(), begun.Window().ID)
		require.NoError(t, err)
		require.Equal(t, Unfinished, got.State)
		_, err = s.Revision(t.Context(), "a", "weekly", "w0", 3)
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestTheViewShowsWholeCopiesAlone(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		archived(t, s, first, backup(0, 1), ranked(1, 3))
		newer, err := s.Begin(t.Context(), first, backup(4, 2))
		require.NoError(t, err)
		require.NoError(t, newer.Append(t.Context(), ranked(1, 4)))
		count := func(where string) (n int) {
			require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM results WHERE `+where, nil, &n))
			return n
		}
		require.Equal(t, 3, count(`board = 'global' AND period = 'weekly' AND name = '2026-W47' AND NOT final`))
		require.NoError(t, newer.Finish(t.Context()))
		require.Equal(t, 4, count(`NOT final`))
		archived(t, s, first, final(0), ranked(1, 5))
		second := final(0)
		second.Revision = 2
		archived(t, s, first, second, hidden(ranked(1, 8), 1, 5))
		require.Equal(t, 6, count(`TRUE`), "banned members aren't in it")
		require.Equal(t, 6, count(`final AND revision = 2 AND members = 6`))
		require.Equal(t, 6, count(`start_at = '2026-11-16 00:00:00.000' AND end_at > '2026-11-22'`))
		require.Equal(t, 1, count(`reached_at = '2026-11-16 00:00:02.002' AND rank = 1 AND points = 1000000`))
	})
}

func TestAWindowThatNoArchiveTakesIsRefused(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		for name, change := range map[string]func(*Window){
			"no board":    func(w *Window) { w.Board = "" },
			"NUL":         func(w *Window) { w.Name = "a\x00" },
			"UTF-8":       func(w *Window) { w.Zone = "\xff" },
			"end":         func(w *Window) { w.End = w.Start },
			"early":       func(w *Window) { w.Start = time.Time{} },
			"late":        func(w *Window) { w.End = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"no seal":     func(w *Window) { w.SealedAt = time.Time{} },
			"seal":        func(w *Window) { w.Revision = 0 },
			"revision":    func(w *Window) { w.Revision = -1 },
			"tick":        func(w *Window) { w.Tick = 1500 * time.Microsecond },
			"no tick":     func(w *Window) { w.Tick = 0 },
			"members":     func(w *Window) { w.Members = -1 },
			"the reason":  func(w *Window) { w.ReopenedWhy = "\x00" },
			"the ledger":  func(w *Window) { w.Ledger = map[string]string{"a": "\x00"} },
			"the fields":  func(w *Window) { w.Fields = append(w.Fields, w.Fields...); w.Fields = w.Fields[:0:0] },
			"field twice": func(w *Window) { w.Fields = append(twoFields(), twoFields()...) },
		} {
			w := final(1)
			w.Fields = twoFields()
			change(&w)
			_, err := s.Begin(t.Context(), first, w)
			require.ErrorIs(t, err, ErrInvalid, name)
		}
		require.Zero(t, states(t, s, false))
	})
}

// Common queries of the view in SQLite use keys: by member, by rank and by both.
func TestTheViewOfSQLiteReadsNoWholeWindowForAMember(t *testing.T) {
	s := open(t, sqliteURL(t))
	require.NoError(t, s.Migrate(t.Context()))
	for where, by := range map[string]string{
		`member = 'm1'`:                                       "SEARCH m USING PRIMARY KEY (window_id=? AND member=?)",
		`board = 'global' AND member = 'm1'`:                  "SEARCH m USING PRIMARY KEY (window_id=? AND member=?)",
		`board = 'global' AND rank <= 10`:                     "SEARCH s USING INDEX standings_rank (window_id=? AND rank>? AND rank<?)",
		`board = 'global' AND name = '2026-W47' AND rank = 1`: "SEARCH s USING INDEX standings_rank (window_id=? AND rank=?)",
	} {
		rows, err := s.read.QueryContext(t.Context(), `EXPLAIN QUERY PLAN SELECT rank, points FROM results WHERE `+where)
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Contains(t, plan, by, where)
		for _, step := range plan {
			require.NotRegexp(t, `SCAN [sm]`, step, where)
		}
	}
}
