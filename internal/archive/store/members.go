package store

// The places of a copy's members, in a table of their own. It serves as an index of the rows by member. A real
// index would be updated at random positions for every row; instead this table is filled when the copy is
// complete, in its own order.

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
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

// ofMembers returns an SQL condition for the rows of n members, $2 and following, in window $1.
func ofMembers(n int) string {
	parameters := make([]string, n)
	for i := range parameters {
		parameters[i] = "$" + strconv.Itoa(i+2)
	}
	return `place IN (SELECT place FROM members WHERE window_id = $1 AND member IN (` + strings.Join(parameters, ",") + `))`
}
