package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that a caller goes by. What else goes wrong is the database's: it passes, or an operator
// has to help; whatever call it was can be made again.
var (
	// ErrFenced: a leader with a larger token, or another with the same, has written since.
	ErrFenced = errors.New("another leader writes to the archive")
	// ErrNotFound: the archive has no such window, or the window no such member.
	ErrNotFound = errors.New("not in the archive")
	// ErrGone: the copy isn't there any more, or was never whole. The next backup replaces one.
	ErrGone = errors.New("this copy isn't in the archive any more")
	// ErrDiffers: what was written before, or is stored, isn't what is to be written.
	ErrDiffers = errors.New("the copy in the archive differs")
	// ErrInvalid: a window or a row that no archive takes.
	ErrInvalid = errors.New("invalid")
)

// Store is an archive. It may be used by several goroutines; a Writing by one.
type Store struct {
	dialect dialect
	name    string  // for errors: without a password
	read    *sql.DB // may be the same as write
	write   *sql.DB
	close   func() error

	removedAtOnce int64 // rows, by a transaction of Sweep
}

// dialect is what differs between the databases.
type dialect interface {
	// begin makes a transaction what fencing needs it to be; the options are those to begin it with.
	options() *sql.TxOptions
	begin(ctx context.Context, tx *sql.Tx) error
	// insert writes rows of a window of which none is there.
	insert(ctx context.Context, conn *sql.Conn, tx *sql.Tx, window int64, fields []string, rows []Row) error
	// takesLong lets the next statements of a transaction that writes take as long as the largest copy needs.
	takesLong(ctx context.Context, tx *sql.Tx) error
	// filled has the database see how many members there are now, where it doesn't by itself at once.
	filled(ctx context.Context, s *Store)
	// repeated reports whether an error is that a member or a rank is there twice.
	repeated(err error) bool
	// at is what an instant is stored as; unixMilli comes back by an instant.
	at(unixMilli int64) any
	// tableQuery finds a table by its name.
	tableQuery() string
	migrations() migrations
}

// readLimit is how long a read may take at most.
const readLimit = 30 * time.Second

// Open connects to an archive: sqlite:path, whose directory has to exist, or postgres://… The
// URL's password is in no error.
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

// Name is the archive's place, for people: without a password.
func (s *Store) Name() string { return s.name }

// transaction calls do within a transaction that writes, of a leader.
func (s *Store) transaction(ctx context.Context, f Fence, do func(conn *sql.Conn, tx *sql.Tx) error) (err error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool; a broken one is left out by it
	tx, err := conn.BeginTx(ctx, s.dialect.options())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // that of a broken connection fails, and the database rolls back by itself
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

// one reads a single row, within a read's time; ErrNotFound where there is none.
func (s *Store) one(ctx context.Context, query string, args []any, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return found(s.read.QueryRowContext(ctx, query, args...).Scan(into...))
}

// found turns the absence of a row into an error of the archive.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
