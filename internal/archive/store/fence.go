package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Fence is a leader, as whom something is written.
type Fence struct {
	Token int64  // from 1, larger than that of any leader before
	Owner string // of this process, from its start: no other ever has it
}

// take makes the transaction the leader's, or says that another is it. It is a transaction's first
// statement: from here to its end no other that writes gets past its own.
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

// LargestToken is that of the leader that has written last; 0 before the first.
func (s *Store) LargestToken(ctx context.Context) (int64, error) {
	var token int64
	err := s.one(ctx, `SELECT token FROM leader WHERE id = 1`, nil, &token)
	if err != nil {
		return 0, s.fail(err, "read the largest token")
	}
	return token, nil
}

// Floor is the largest token that the archive was written by; 0 also where it has no schema yet.
func (s *Store) Floor(ctx context.Context) (int64, error) {
	token, err := s.LargestToken(ctx)
	if err != nil && errors.Is(s.Check(ctx), ErrSchemaOlder) {
		return 0, nil
	}
	return token, err
}

// Take writes nothing but who leads: from then on every leader before is fenced.
func (s *Store) Take(ctx context.Context, f Fence) error {
	return s.fail(s.transaction(ctx, f, func(*sql.Conn, *sql.Tx) error { return nil }), "take the archive")
}

// fail says of an error what was being done, and where.
func (s *Store) fail(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("archive %s: %s: %w", s.name, doing, err)
}
