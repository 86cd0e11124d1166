package chaos

// The archive, into which final windows are copied, and what disturbs it. Everything else works meanwhile: events
// continue to count, and final windows are archived later. internal/archive/store tests full disks and PostgreSQL.

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	_ "modernc.org/sqlite" // by the name "sqlite"
)

var archiveFaults = []fault{
	{kind: "archive: locked by somebody else", group: ofArchive, calm: true, do: lockArchive},
}

// openArchive opens the archive, a SQLite file.
func (w *world) openArchive() (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+w.archive+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	return db, nil
}

// lockArchive writes to the archive in a transaction of its own, for so long that a leader gives up.
func lockArchive(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	db, err := w.openArchive()
	if err != nil {
		return nothing, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nothing, nil // a leader is writing
	}
	held := between(r, time.Second, 12*time.Second) // long enough that leaders give up and others lead
	select {
	case <-time.After(held):
	case <-ctx.Done():
	}
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return nothing, fmt.Errorf("let go of the archive: %w", err)
	}
	return saw("nobody else could write for %s", seconds(held)), nil
}
