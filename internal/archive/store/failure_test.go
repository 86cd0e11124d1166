package store

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

func TestAFullDiskIsAnErrorThatCanBeGoneOnFrom(t *testing.T) {
	s := open(t, sqliteURL(t))
	require.NoError(t, s.Migrate(t.Context()))
	rows := ranked(1, 2000)
	begun, err := s.Begin(t.Context(), first, final(2000))
	require.NoError(t, err)
	require.NoError(t, begun.Append(t.Context(), rows[:500]))
	var pages int
	require.NoError(t, s.write.QueryRowContext(t.Context(), `PRAGMA page_count`).Scan(&pages))
	_, err = s.write.ExecContext(t.Context(), `PRAGMA max_page_count = `+strconv.Itoa(pages+5))
	require.NoError(t, err)
	for range 2 {
		require.ErrorContains(t, begun.Append(t.Context(), rows[500:]), "database or disk is full")
		require.EqualValues(t, 500, begun.Written())
	}
	_, err = s.write.ExecContext(t.Context(), `PRAGMA max_page_count = 1000000`)
	require.NoError(t, err)
	require.NoError(t, begun.Append(t.Context(), rows[500:]))
	require.NoError(t, begun.Finish(t.Context()))
	require.Equal(t, rows, all(t, s, begun.Window().ID))
}

// A crash of the server loses only what was not committed.
func TestACrashOfPostgresIsGoneOnFrom(t *testing.T) {
	server := testenv.LocalPostgres(t)
	s := open(t, server.Database(t))
	require.NoError(t, s.Migrate(t.Context()))
	rows := ranked(1, 30_000)
	begun, err := s.Begin(t.Context(), first, final(30_000))
	require.NoError(t, err)
	require.NoError(t, begun.Append(t.Context(), rows[:10_000]))
	goOn, came := pausedInside(t, begun, rows[10_000:20_000])
	server.Kill()
	goOn()
	require.Error(t, <-came)
	require.Error(t, begun.Append(t.Context(), rows[10_000:20_000]), "it is away")
	require.Error(t, s.Check(t.Context()))
	server.Start()
	// The pool detects its broken connections one by one.
	require.Eventually(t, func() bool { return s.Check(t.Context()) == nil }, 10*time.Second, 10*time.Millisecond)

	went, err := s.Begin(t.Context(), first, final(30_000))
	require.NoError(t, err)
	require.EqualValues(t, 10_000, went.Written())
	require.NoError(t, went.Append(t.Context(), rows[10_000:]))
	require.NoError(t, went.Finish(t.Context()))
	require.Equal(t, rows, all(t, s, went.Window().ID))
}

// Verify detects changed data by the number of rows, the checksum, or a missing rank.
func TestWhatWasChangedInTheDatabaseIsFound(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		for name, change := range map[string]string{
			"points":  `UPDATE standings SET points = points + 1 WHERE rank = 7`,
			"score":   `UPDATE standings SET score = score + 0.001 WHERE rank = 7`,
			"member":  `UPDATE standings SET member = 'another' WHERE rank = 7`,
			"deleted": `DELETE FROM standings WHERE rank = 7`,
			"last":    `DELETE FROM standings WHERE rank = 100`,
			"more":    `INSERT INTO standings SELECT window_id, 101, 101, 'another', points, fields, score, reached_at FROM standings WHERE rank = 100`,
			"hidden":  `UPDATE standings SET rank = NULL WHERE rank = 100`,
			"swapped": `UPDATE standings SET points = 201 - rank WHERE rank IN (50, 51)`,
		} {
			begun, err := s.Begin(t.Context(), first, final(100))
			require.NoError(t, err)
			require.NoError(t, begun.Append(t.Context(), ranked(1, 100)))
			_, err = s.write.ExecContext(t.Context(), change)
			require.NoError(t, err, name)
			require.ErrorIs(t, begun.Finish(t.Context()), ErrDiffers, name)
			_, err = s.write.ExecContext(t.Context(), `UPDATE windows SET state = 'whole'`)
			require.NoError(t, err)
			require.ErrorIs(t, s.Verify(t.Context(), begun.Window().ID), ErrDiffers, name)
			_, err = s.write.ExecContext(t.Context(), `UPDATE windows SET state = 'removing'`)
			require.NoError(t, err)
			removed, err := s.Sweep(t.Context(), first)
			require.NoError(t, err)
			require.Equal(t, 1, removed)
			var left int
			require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM standings`, nil, &left))
			require.Zero(t, left, name)
		}
	})
}

// In SQLite members are found by a table of their own, which is also verified.
func TestMembersThatAreFoundElsewhereInSQLiteAreNoticed(t *testing.T) {
	s := open(t, sqliteURL(t))
	require.NoError(t, s.Migrate(t.Context()))
	for name, change := range map[string]string{
		"another place": `UPDATE members SET place = 8 WHERE place = 7`,
		"missing":       `DELETE FROM members WHERE place = 7`,
		"one more":      `INSERT INTO members SELECT window_id, 'another', 7 FROM members LIMIT 1`,
	} {
		w := archived(t, s, first, final(0), ranked(1, 100))
		require.NoError(t, s.Verify(t.Context(), w.ID))
		_, err := s.write.ExecContext(t.Context(), change)
		require.NoError(t, err)
		require.ErrorIs(t, s.Verify(t.Context(), w.ID), ErrDiffers, name)
		_, err = s.write.ExecContext(t.Context(), `UPDATE windows SET state = 'removing'`)
		require.NoError(t, err)
		_, err = s.Sweep(t.Context(), first)
		require.NoError(t, err)
	}
	var left int
	require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM members`, nil, &left))
	require.Zero(t, left)
}
