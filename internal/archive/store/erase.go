package store

// Erasure removes the rows of a member from every copy. An erased row keeps its place and rank, so that the copy
// records the erasure and no other row changes.
//
// The table erasures has every erased member. When a copy becomes complete, its rows of erased members are
// removed, too: they may have been read from Redis before the erasure, or from a Redis that went back.

import (
	"context"
	"database/sql"
	"fmt"
)

// Erasures returns the erased members that have no row in any copy.
func (s *Store) Erasures(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	all := map[string]bool{}
	err := scanEach(ctx, s.read, func(member string) { all[memberOf(member)] = true }, `SELECT member FROM erasures WHERE done`)
	return all, s.fail(err, "read which members were erased")
}

// Erase removes the rows of a member from every copy, and returns their number. It also drops unfinished copies;
// Begin starts them again. After an error or a crash the caller repeats the call.
func (s *Store) Erase(ctx context.Context, f Fence, member string) (rows int64, err error) {
	rows, err = s.erase(ctx, f, storedMember(member))
	return rows, s.fail(err, "erase a member")
}

func (s *Store) erase(ctx context.Context, f Fence, stored string) (rows int64, err error) {
	err = s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO erasures (member) VALUES ($1) ON CONFLICT (member) DO NOTHING`, stored); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE windows SET state = 'removing' WHERE state = 'writing'`)
		return err
	})
	if err != nil {
		return 0, err
	}
	var copies []int64
	err = scanEach(ctx, s.read, func(id int64) { copies = append(copies, id) },
		`SELECT w.id FROM windows w JOIN members m ON m.window_id = w.id AND m.member = $1 WHERE w.state = 'whole' ORDER BY w.id`, stored)
	if err != nil {
		return 0, err
	}
	for _, id := range copies {
		err := s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) error { return eraseRow(ctx, tx, id, stored) })
		if err != nil {
			return 0, err
		}
	}
	err = s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `UPDATE erasures SET done = TRUE WHERE member = $1 RETURNING rows_erased`, stored).Scan(&rows)
	})
	return rows, err
}

// eraseFrom removes the rows of all erased members from a copy.
func eraseFrom(ctx context.Context, tx *sql.Tx, id int64) error {
	var members []string
	err := scanEach(ctx, tx, func(member string) { members = append(members, member) },
		`SELECT e.member FROM erasures e JOIN members m ON m.window_id = $1 AND m.member = e.member`, id)
	for _, member := range members {
		if err == nil {
			err = eraseRow(ctx, tx, id, member)
		}
	}
	return err
}

// eraseRow removes a member's row from a complete copy and updates the copy's counts and checksum. It does nothing
// if the copy was dropped meanwhile or has no such row.
func eraseRow(ctx context.Context, tx *sql.Tx, id int64, stored string) error {
	var row *Row
	err := scanRows(ctx, tx, func(r *Row) error { row = r; return nil }, `SELECT `+rowColumns+ofWhole+` AND `+ofMembers(`$2`), id, stored)
	if err != nil || row == nil {
		return err
	}
	w, err := scanWindow(tx.QueryRowContext(ctx, `SELECT `+windowColumns+` FROM windows WHERE id = $1`, id).Scan)
	if err != nil {
		return err
	}
	if row.Rank > 0 {
		w.Members--
	} else {
		w.Hidden--
	}
	w.Checksum -= row.hash(len(w.Fields))
	w.Checksum += (&Row{Place: row.Place}).hash(len(w.Fields))
	for _, change := range []struct {
		query string
		args  []any
	}{
		{`UPDATE standings SET member = NULL, points = NULL, fields = NULL, score = NULL, reached_at = NULL WHERE window_id = $1 AND place = $2`, []any{id, row.Place}},
		{`DELETE FROM members WHERE window_id = $1 AND member = $2`, []any{id, stored}},
		{`UPDATE windows SET members = $2, hidden = $3, erased = erased + 1, checksum = $4 WHERE id = $1`, []any{id, w.Members, w.Hidden, w.Checksum.String()}},
		{`UPDATE erasures SET rows_erased = rows_erased + 1 WHERE member = $1`, []any{stored}},
	} {
		if err := changeOne(ctx, tx, change.query, change.args...); err != nil {
			return fmt.Errorf("erase a row of %s: %w", w, err)
		}
	}
	return nil
}

// UnshownPlaces returns the places of erased rows in a complete copy, in order. With hidden it includes the places
// of members that were banned when the copy was taken.
func (s *Store) UnshownPlaces(ctx context.Context, id int64, hidden bool) ([]int64, error) {
	which := `member IS NULL`
	if hidden {
		which = `(member IS NULL OR rank IS NULL)`
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var all []int64
	err := scanEach(ctx, s.read, func(place int64) { all = append(all, place) },
		`SELECT place FROM standings WHERE window_id = $1 AND `+which+` ORDER BY place`, id)
	return all, s.fail(err, "find rows that aren't shown")
}

// scanEach calls each with the single column of every row.
func scanEach[T any](ctx context.Context, from querier, each func(T), query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		var value T
		if err := rows.Scan(&value); err != nil {
			return err
		}
		each(value)
	}
	return rows.Err()
}
