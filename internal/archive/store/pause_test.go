package store

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// pausedInside starts a leader's transaction that adds rows and then pauses. goOn lets it continue; came receives
// its result.
func pausedInside(t *testing.T, w *Writing, rows []Row) (goOn func(), came <-chan error) {
	t.Helper()
	inside, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- w.store.transaction(t.Context(), w.fence, func(conn *sql.Conn, tx *sql.Tx) error {
			now, err := w.current(t.Context(), tx)
			if err == nil {
				err = w.add(t.Context(), conn, tx, now, rows)
			}
			close(inside)
			<-resume
			return err
		})
	}()
	<-inside
	return func() { close(resume) }, done
}

// The next leader waits for a transaction in progress, and then finds its rows.
func TestALeaderThatPausesShortlyWritesBeforeTheNext(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, url string) {
		begun, err := s.Begin(t.Context(), Fence{1, "a"}, final(20))
		require.NoError(t, err)
		goOn, came := pausedInside(t, begun, ranked(1, 10))

		other := open(t, url)
		var went *Writing
		taken := make(chan error, 1)
		go func() {
			var err error
			went, err = other.Begin(t.Context(), Fence{2, "b"}, final(20))
			taken <- err
		}()
		select {
		case err := <-taken:
			t.Fatalf("the next leader went past a transaction: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		goOn()
		require.NoError(t, <-came)
		require.NoError(t, <-taken)
		require.EqualValues(t, 10, went.Written())
		require.ErrorIs(t, begun.Append(t.Context(), ranked(11, 20)), ErrFenced)
		require.NoError(t, went.Append(t.Context(), ranked(11, 20)))
		require.NoError(t, went.Finish(t.Context()))
		require.Equal(t, ranked(1, 20), all(t, s, went.Window().ID))
	})
}

// The server ends the session of a leader that is paused for long, and the next leader continues.
func TestALeaderThatPausesForLongHasItsTransactionRolledBack(t *testing.T) {
	url := testenv.Postgres(t)
	s, other := open(t, url), open(t, url)
	require.NoError(t, s.Migrate(t.Context()))
	s.dialect = postgres{statement: time.Minute, lock: time.Minute, idle: 100 * time.Millisecond}
	begun, err := s.Begin(t.Context(), Fence{1, "a"}, final(20))
	require.NoError(t, err)
	goOn, came := pausedInside(t, begun, ranked(1, 10))

	went, err := other.Begin(t.Context(), Fence{2, "b"}, final(20))
	require.NoError(t, err, "a is paused still")
	require.Zero(t, went.Written())
	require.NoError(t, went.Append(t.Context(), ranked(1, 20)))
	goOn()
	require.Error(t, <-came)
	require.ErrorIs(t, begun.Append(t.Context(), ranked(1, 10)), ErrFenced)
	require.NoError(t, went.Finish(t.Context()))
	require.Equal(t, ranked(1, 20), all(t, other, went.Window().ID))
}

// SQLite's lock cannot be taken from a paused leader: the next leader fails until the first continues.
func TestInSQLiteTheNextLeaderFailsWhileOneIsPaused(t *testing.T) {
	url := sqliteURL(t)
	s, other := open(t, url), open(t, url)
	require.NoError(t, s.Migrate(t.Context()))
	begun, err := s.Begin(t.Context(), Fence{1, "a"}, final(20))
	require.NoError(t, err)
	goOn, came := pausedInside(t, begun, ranked(1, 10))

	_, err = other.write.ExecContext(t.Context(), `PRAGMA busy_timeout = 50`)
	require.NoError(t, err)
	require.ErrorContains(t, other.Take(t.Context(), Fence{2, "b"}), "database is locked")
	token, err := other.LargestToken(t.Context())
	require.NoError(t, err, "readers go on")
	require.EqualValues(t, 1, token)
	goOn()
	require.NoError(t, <-came)
	require.NoError(t, other.Take(t.Context(), Fence{2, "b"}))
	require.ErrorIs(t, begun.Append(t.Context(), ranked(11, 20)), ErrFenced)
}
