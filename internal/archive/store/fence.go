package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Fence identifies the leader that writes.
type Fence struct {
	Token int64  // at least 1, larger than that of any earlier leader
	Owner string // unique to this start of the process
}

// take registers the transaction's leader, or returns ErrFenced. It must be the first statement of the
// transaction: until its end, no other writing transaction gets past its own take.
func (f Fence) take(ctx context.Context, tx *sql.Tx) error {
	if f.Token < 1 || f.Owner == "" {
		return fmt.Errorf("%w: a leader with token %d and owner %q", ErrInvalid, f.Token, f.Owner)
	}
	done, err := tx.ExecContext(ctx, `UPDATE leader SET token = $1, owner = $2
		WHERE id = 1 AND (token < $1 OR token = $1 AND owner = $2)`, f.Token, f.Owner)
	if err != nil {
		return fmt.Errorf("take the archive as a leader: %w", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return fmt.Errorf("take the archive as a leader: %w", err)
	}
	if n == 1 {
		return nil
	}
	var token int64
	var owner string
	if err := tx.QueryRowContext(ctx, `SELECT token, owner FROM leader WHERE id = 1`).Scan(&token, &owner); err != nil {
		return fmt.Errorf("read the archive's leader: %w", found(err))
	}
	return fmt.Errorf("%w: %s with token %d, and this one is %s with %d", ErrFenced, owner, token, f.Owner, f.Token)
}

// LargestToken returns the token of the last leader that has written; 0 if there was none.
func (s *Store) LargestToken(ctx context.Context) (int64, error) {
	var token int64
	err := s.one(ctx, `SELECT token FROM leader WHERE id = 1`, nil, &token)
	if err != nil {
		return 0, s.fail(err, "read the largest token")
	}
	return token, nil
}

// Floor returns the largest token in the archive; 0 also if the archive has no schema yet.
func (s *Store) Floor(ctx context.Context) (int64, error) {
	token, err := s.LargestToken(ctx)
	if err != nil && errors.Is(s.Check(ctx), ErrSchemaOlder) {
		return 0, nil
	}
	return token, err
}

// Take only registers the leader. From then on every earlier leader is fenced.
func (s *Store) Take(ctx context.Context, f Fence) error {
	return s.fail(s.transaction(ctx, f, func(*sql.Conn, *sql.Tx) error { return nil }), "take the archive")
}

// fail adds to an error the archive's name and the operation.
func (s *Store) fail(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("archive %s: %s: %w", s.name, doing, err)
}
