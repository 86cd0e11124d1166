package chaos

// This file disturbs the archive's database. Everything else works meanwhile: events continue to count, and
// final windows are archived later.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var archiveFaults = []fault{
	{kind: "archive: locked by somebody else", group: ofArchive, calm: true, do: lockArchive},
	{kind: "archive: its disk is full", group: ofArchive, archive: onSmallDisk, calm: true, do: fillDisk},
	{kind: "archive: PostgreSQL killed, started again", group: ofArchive, archive: onPostgres, calm: true, do: killPostgres},
	{kind: "archive: sessions ended by PostgreSQL", group: ofArchive, archive: onPostgres, calm: true, do: endSessions},
}

// consumersSessions selects the consumers' sessions, by the application name that they set.
const consumersSessions = "FROM pg_stat_activity WHERE application_name = 'standings'"

// awayFor returns how long an archive is unavailable: long enough that leaders give up and others lead.
func awayFor(r *rand.Rand) time.Duration { return between(r, time.Second, 12*time.Second) }

// wait waits for a duration; it returns early if the test ends.
func (w *world) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.Context().Done():
	}
}

// lockArchive writes to the archive in a transaction of its own, for so long that a leader gives up.
func lockArchive(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	db, err := w.archive.open()
	if err != nil {
		return nothing, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nothing, nil // a leader is writing
	}
	if w.archive.is(onPostgres) { // SQLite is locked from the start of a transaction
		waits, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err = tx.ExecContext(waits, "LOCK TABLE leader, windows, standings IN EXCLUSIVE MODE")
		cancel()
		if err != nil {
			_ = tx.Rollback()   // it failed
			return nothing, nil // a leader is writing, or none has created the tables yet
		}
	}
	held := awayFor(r)
	w.wait(held)
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return nothing, fmt.Errorf("let go of the archive: %w", err)
	}
	return saw("nobody else could write for %s", seconds(held)), nil
}

// fillDisk fills the archive's disk for a while.
func fillDisk(w *world, r *rand.Rand) (func() string, error) {
	path := filepath.Join(w.archive.disk, "others")
	file, err := os.Create(path)
	if err != nil {
		return nothing, fmt.Errorf("fill the archive's disk: %w", err)
	}
	filled, some, held := 0, make([]byte, 64<<10), awayFor(r)
	for until := time.Now().Add(held); time.Now().Before(until); w.wait(20 * time.Millisecond) {
		for err = nil; err == nil; { // also fill space that was freed since, for example by truncating a log
			var n int
			n, err = file.Write(some)
			filled += n
		}
		if !errors.Is(err, syscall.ENOSPC) {
			break
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	if err = errors.Join(err, file.Close(), os.Remove(path)); err != nil {
		return nothing, fmt.Errorf("fill the archive's disk: %w", err)
	}
	return saw("%d KiB were all that there was room for, for %s", filled>>10, seconds(held)), nil
}

// killPostgres kills the server, together with its sessions or alone.
func killPostgres(w *world, r *rand.Rand) (func() string, error) {
	sessions, began, err := w.postgres()
	if err != nil {
		return nothing, err
	}
	kill, how := w.archive.postgres.Kill, "with all of its sessions"
	if r.IntN(2) == 0 {
		kill, how = w.archive.postgres.KillAlone, "by kill -9"
	}
	kill()
	away := awayFor(r)
	w.wait(away)
	w.archive.postgres.Start()
	if _, again, err := w.postgres(); err != nil || again == began || sessions == 0 {
		return nothing, err
	}
	return saw("it was away for %s, %s, where consumers had %d", seconds(away), how, sessions), nil
}

// postgres returns the number of consumers' sessions, and the server's start time.
func (w *world) postgres() (sessions int, began string, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	db, err := w.archive.open()
	if err != nil {
		return 0, "", err
	}
	defer db.Close() //nolint:errcheck // it was read
	err = db.QueryRowContext(ctx, "SELECT count(*), pg_postmaster_start_time()::text "+consumersSessions).Scan(&sessions, &began)
	if err != nil {
		return 0, "", fmt.Errorf("ask PostgreSQL for its sessions: %w", err)
	}
	return sessions, began, nil
}

// endSessions makes the server end the consumers' sessions repeatedly, whatever they are doing.
func endSessions(w *world, r *rand.Rand) (func() string, error) {
	ctx := w.t.Context()
	db, err := w.archive.open()
	if err != nil {
		return nothing, err
	}
	defer db.Close() //nolint:errcheck // nothing is in flight
	ended := 0
	for until := time.Now().Add(awayFor(r)); time.Now().Before(until); w.wait(between(r, 10*time.Millisecond, time.Second)) {
		n := 0
		if err := db.QueryRowContext(ctx, "SELECT count(pg_terminate_backend(pid)) "+consumersSessions).Scan(&n); err != nil {
			return nothing, fmt.Errorf("end sessions: %w", err)
		}
		ended += n
	}
	if ended == 0 {
		return nothing, nil
	}
	return saw("%d sessions were ended", ended), nil
}
