package store

// Removal of dropped copies.

import (
	"context"
	"database/sql"
	"errors"
	"math"
)

// removedAtOnce is the number of rows that one transaction of Sweep removes.
const removedAtOnce = 10_000

// sweeping is the progress of a copy's removal. Each transaction starts after the range that was already removed:
// PostgreSQL keeps the index entries of deleted rows until a vacuum, and would otherwise read all of them each
// time.
type sweeping struct {
	atOnce int64
	window int64
	member string // members before it are removed
	above  int64  // rows at places above it are removed
}

// Sweep removes dropped copies. It deletes their rows from the last place upwards, some thousand per transaction,
// and continues after a crash. It returns the number of copies removed.
func (s *Store) Sweep(ctx context.Context, f Fence) (removed int, err error) {
	at := sweeping{atOnce: s.removedAtOnce}
	for {
		var more, one bool
		err := s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) (err error) {
			more, one, err = at.some(ctx, tx)
			return err
		})
		if err != nil {
			return removed, s.fail(err, "remove copies that were dropped")
		}
		if one {
			removed++
		}
		if !more {
			return removed, nil
		}
	}
}

// some removes rows of a copy, or the copy once it has none. The caller must end the sweep on an error: at would
// otherwise count rolled-back deletions as done.
func (at *sweeping) some(ctx context.Context, tx *sql.Tx) (more, one bool, err error) {
	var id, left int64
	err = tx.QueryRowContext(ctx, `SELECT id, rows_written FROM windows WHERE state = 'removing' ORDER BY id LIMIT 1`).Scan(&id, &left)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	if at.window != id {
		*at = sweeping{atOnce: at.atOnce, window: id, above: math.MaxInt64}
	}
	if more, err := at.members(ctx, tx); err != nil || more {
		return true, false, err
	}
	rest := max(left-at.atOnce, 0)
	if _, err := tx.ExecContext(ctx, `DELETE FROM standings WHERE window_id = $1 AND place > $2 AND place <= $3`, id, rest, at.above); err != nil {
		return false, false, err
	}
	at.above = rest
	if rest > 0 {
		return true, false, changeOne(ctx, tx, `UPDATE windows SET rows_written = $2 WHERE id = $1`, id, rest)
	}
	return true, true, changeOne(ctx, tx, `DELETE FROM windows WHERE id = $1`, id)
}

// members removes some of the copy's entries in the table of members; more reports whether any are left. It
// deletes a range of members: given a list, a database might search through all of them each time.
func (at *sweeping) members(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	var last sql.NullString
	err = tx.QueryRowContext(ctx, `SELECT max(member) FROM (SELECT member FROM members WHERE window_id = $1 AND member >= $2 ORDER BY member LIMIT $3) AS page`,
		at.window, at.member, at.atOnce).Scan(&last)
	if err != nil || !last.Valid {
		return false, err
	}
	done, err := tx.ExecContext(ctx, `DELETE FROM members WHERE window_id = $1 AND member >= $2 AND member <= $3`, at.window, at.member, last.String)
	if err != nil {
		return false, err
	}
	at.member = last.String
	n, err := done.RowsAffected()
	return n == at.atOnce, err
}
