package store

// The places of a copy's members, in a table of their own. It serves as an index of the rows by member. A real
// index would be updated at random positions for every row; instead this table is filled when the copy is
// complete, in its own order.

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// complete fills the table of members for a copy that has all rows. The database sorts the members; for large
// copies it uses temporary files.
func (s *Store) complete(ctx context.Context, tx *sql.Tx, window int64) error {
	if err := s.dialect.takesLong(ctx, tx); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO members (window_id, member, place)
		SELECT window_id, member, place FROM standings WHERE window_id = $1 ORDER BY member`, window)
	return err
}

// ofMembers returns an SQL condition for the rows of the given members in window $1.
func ofMembers(parameters string) string {
	return `place IN (SELECT place FROM members WHERE window_id = $1 AND member IN (` + parameters + `))`
}

// places is a checksum of the members' places. The order of the rows does not matter.
type places uint64

func (p *places) add(place int64, member string) {
	var space [maxMember + 32]byte
	b := append(strconv.AppendInt(space[:0], place, 10), ' ')
	*p += places(xxhash.Sum64(append(b, member...)))
}

// verifyMembers compares the table of members with the rows of a complete copy, whose checksum is given.
func (s *Store) verifyMembers(ctx context.Context, w *Window, rows places) error {
	var count int64
	var found places
	for last := ""; ; {
		n, until, err := s.membersAfter(ctx, w.ID, last, &found)
		if err != nil {
			return err
		}
		if count += n; n == 0 {
			break
		}
		last = until
	}
	if wanted := w.Members + w.Hidden; count != wanted {
		return fmt.Errorf("%w: %d members are found, and it was written with %d", ErrDiffers, count, wanted)
	}
	if found != rows {
		return fmt.Errorf("%w: members are found at the rows of others", ErrDiffers)
	}
	return nil
}

// membersAfter adds a page of members to found. It returns the number of members in the page, and the last.
func (s *Store) membersAfter(ctx context.Context, window int64, after string, found *places) (n int64, last string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, `SELECT member, place FROM members WHERE window_id = $1 AND member > $2 ORDER BY member LIMIT $3`, window, after, readAtOnce)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		var place int64
		if err := rows.Scan(&last, &place); err != nil {
			return 0, "", err
		}
		found.add(place, memberOf(last))
		n++
	}
	return n, last, rows.Err()
}
