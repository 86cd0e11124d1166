package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers handle. Any other error is the database's: it is temporary, or an operator must act. Every
// failed call can be repeated.
var (
	// ErrFenced: a leader with a larger token, or another one with the same token, has written since.
	ErrFenced = errors.New("another leader writes to the archive")
	// ErrNotFound: the archive does not have the window, or the window does not have the member.
	ErrNotFound = errors.New("not in the archive")
	// ErrGone: the copy was removed, or was never complete. A newer backup replaces the previous one.
	ErrGone = errors.New("this copy isn't in the archive any more")
	// ErrDiffers: the rows written before, or stored, are not the rows expected.
	ErrDiffers = errors.New("the copy in the archive differs")
	// ErrInvalid: the archive cannot store this window or row.
	ErrInvalid = errors.New("invalid")
)

// Store is an archive. It is safe for concurrent use; a Writing is not.
type Store struct {
	dialect dialect
	name    string  // for errors; without a password
	read    *sql.DB // may be the same as write
	write   *sql.DB
	close   func() error

	removedAtOnce int64 // rows per transaction of Sweep
}

// dialect covers the differences between the databases.
type dialect interface {
	// options and begin give a transaction the properties that fencing needs.
	options() *sql.TxOptions
	begin(ctx context.Context, tx *sql.Tx) error
	// insert writes rows of a window, none of which exists yet.
	insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, window int64, fields []string, rows []Row) error
	// takesLong allows the following statements of a writing transaction the time that the largest copy needs.
	takesLong(ctx context.Context, tx *sql.Tx) error
	// filled updates the database's statistics about members, if the database does not do so at once.
	filled(ctx context.Context, s *Store)
	// repeated reports whether an error means that a member or a rank occurs twice.
	repeated(err error) bool
	// at returns the stored form of an instant; the type instant reads it.
	at(unixMilli int64) any
	// tableQuery returns the query that finds a table by its name.
	tableQuery() string
	migrations() migrations
}

// readLimit is the maximum duration of a read.
const readLimit = 30 * time.Second

// Open connects to an archive: sqlite:path, whose directory must exist, or postgres://… Errors do not contain the
// URL's password.
func Open(ctx context.Context, url string) (*Store, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		return openSQLite(ctx, rest)
	case "postgres", "postgresql":
		return openPostgres(ctx, url)
	}
	return nil, fmt.Errorf("%w: the archive's URL begins with neither sqlite: nor postgres://", ErrInvalid)
}

// Close closes the connections.
func (s *Store) Close() error { return s.close() }

// Name returns the archive's location for messages, without a password.
func (s *Store) Name() string { return s.name }

// transaction calls do within a writing transaction of a leader.
func (s *Store) transaction(ctx context.Context, f Fence, do func(conn *sql.Conn, tx *sql.Tx) error) (err error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns to the pool, which discards a broken connection
	tx, err := conn.BeginTx(ctx, s.dialect.options())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // on a broken connection this fails, and the database rolls back itself
		}
	}()
	if err := s.dialect.begin(ctx, tx); err != nil {
		return err
	}
	if err := f.take(ctx, tx); err != nil {
		return err
	}
	if err := do(conn, tx); err != nil {
		if s.dialect.repeated(err) {
			return fmt.Errorf("%w: a member or a rank twice: %w", ErrDiffers, err)
		}
		return err
	}
	return tx.Commit()
}

// one reads a single row, within readLimit. The error is ErrNotFound if there is none.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return found(s.read.QueryRowContext(ctx, query, args...).Scan(into...))
}

// found translates sql.ErrNoRows to ErrNotFound.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
