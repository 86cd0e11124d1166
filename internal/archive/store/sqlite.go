package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// sqlite needs the database/sql driver "sqlite" (modernc.org/sqlite), which main imports. Linking the driver takes
// seconds, so tests that open no archive are built without it.
type sqlite struct{}

// SQLite's extended result codes for a row that already exists (https://sqlite.org/rescode.html).
const (
	constraintPrimaryKey = 1555
	constraintUnique     = 2067
)

// sqlitePragmas are set on every connection. A commit is on disk before it returns (synchronous FULL). Readers
// continue during a write (WAL). The WAL file is truncated after a large copy (journal_size_limit).
const sqlitePragmas = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=journal_size_limit(67108864)"

const sqliteReaders = 4

func openSQLite(ctx context.Context, path string) (*Store, error) {
	if trimmed := strings.TrimPrefix(path, "//"); trimmed != path {
		if !strings.HasPrefix(trimmed, "/") {
			return nil, fmt.Errorf("%w: sqlite:%s has a host; write sqlite:path, or sqlite:/path from the root", ErrInvalid, path)
		}
		path = trimmed
	}
	if path == "" || strings.HasPrefix(path, ":") || strings.ContainsAny(path, "?\x00") {
		return nil, fmt.Errorf("%w: sqlite:%s names no file", ErrInvalid, path)
	}
	name := "sqlite:" + path
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("archive %s: its directory: %w", name, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("archive %s: %s is no directory", name, dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("archive %s: it is a directory", name)
	}
	// Only this process's user may read a new file. SQLite gives the same mode to the files that it adds. If the
	// path cannot be opened, SQLite reports that.
	if made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = made.Close() // nothing was written
	}
	file := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + sqlitePragmas
	write, err := sql.Open("sqlite", file+"&_txlock=immediate&_pragma=cache_size(-16384)")
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", name, err)
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", file+"&_pragma=query_only(1)&_pragma=cache_size(-16384)")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", name, err), write.Close())
	}
	read.SetMaxOpenConns(sqliteReaders)
	read.SetMaxIdleConns(sqliteReaders)
	s := &Store{
		dialect: sqlite{}, name: name, read: read, write: write, removedAtOnce: removedAtOnce,
		close: func() error { return errors.Join(read.Close(), write.Close()) },
	}
	// This query creates the file, and fails if the file is not an SQLite database.
	var mode string
	if err := write.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return nil, errors.Join(fmt.Errorf("archive %s: %w", name, err), s.close())
	}
	if mode != "wal" {
		return nil, errors.Join(fmt.Errorf("archive %s: its file system has no shared memory, which SQLite's WAL needs", name), s.close())
	}
	return s, nil
}

func (sqlite) takesLong(context.Context, *sql.Tx) error { return nil }
func (sqlite) filled(context.Context, *Store)           {}
func (sqlite) options() *sql.TxOptions                  { return nil } // IMMEDIATE, by _txlock
func (sqlite) begin(context.Context, *sql.Tx) error     { return nil }
func (sqlite) at(ms int64) any                          { return ms }
func (sqlite) tableQuery() string {
	return `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1`
}
func (sqlite) migrations() migrations { return sqliteMigrations }

// insertedAtOnce is the number of rows per statement: more than some hundred are not faster.
const insertedAtOnce = 500

const insertRow = "(?,?,?,?,?,?,?,?)"

func (sqlite) insert(ctx context.Context, _ *sql.Conn, tx *sql.Tx, window int64, fields []string, rows []Row) error {
	const into = "INSERT INTO standings (window_id, place, rank, member, points, fields, score, reached_at) VALUES "
	many, err := tx.PrepareContext(ctx, into+insertRow+strings.Repeat(","+insertRow, insertedAtOnce-1))
	if err != nil {
		return err
	}
	defer func() { _ = many.Close() }() // the transaction's end closes it anyway
	args := make([]any, 0, 8*insertedAtOnce)
	for len(rows) > 0 {
		n := min(len(rows), insertedAtOnce)
		args = args[:0]
		for i := range rows[:n] {
			r := &rows[i]
			points, text := r.columns(fields)
			args = append(args, window, r.Place, r.rank(), storedMember(r.Member), points, text, r.Score, r.ReachedAt)
		}
		if n == insertedAtOnce {
			_, err = many.ExecContext(ctx, args...)
		} else {
			_, err = tx.ExecContext(ctx, into+insertRow+strings.Repeat(","+insertRow, n-1), args...)
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (sqlite) repeated(err error) bool {
	var e interface{ Code() int }
	return errors.As(err, &e) && (e.Code() == constraintPrimaryKey || e.Code() == constraintUnique)
}
