package store

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// PostgreSQL keeps the index entries of deleted rows. If each transaction read all of them again, the time per row
// would grow with the number of rows: here three times as long for four times as many rows.
func TestARowOfALargeCopyIsRemovedAsFastAsOneOfASmallCopy(t *testing.T) {
	// blocks returns the number of index blocks read per removed row.
	blocks := func(rows int64) float64 {
		s := open(t, testenv.Postgres(t))
		s.removedAtOnce = 100
		require.NoError(t, s.Migrate(t.Context()))
		archived(t, s, first, backup(0, 1), ranked(1, rows))
		archived(t, s, first, backup(0, 2), nil)
		before := blocksOfIndexes(t, s)
		_, err := s.Sweep(t.Context(), first)
		require.NoError(t, err)
		var left int64
		require.NoError(t, s.one(t.Context(), `SELECT (SELECT count(*) FROM standings) + (SELECT count(*) FROM members)`, nil, &left))
		require.Zero(t, left)
		return float64(blocksOfIndexes(t, s)-before) / float64(rows)
	}
	small, large := blocks(5_000), blocks(20_000)
	require.Positive(t, small)
	require.Less(t, large, 1.5*small)
}

// blocksOfIndexes returns the number of index blocks read so far, for the tables with a copy's rows.
func blocksOfIndexes(t *testing.T, s *Store) (n int64) {
	t.Helper()
	conn, err := s.write.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	flush := func(conn *sql.Conn) {
		_, err := conn.ExecContext(t.Context(), `SELECT pg_stat_force_next_flush()`)
		require.NoError(t, err)
	}
	flush(conn)
	require.NoError(t, conn.QueryRowContext(context.WithoutCancel(t.Context()),
		`SELECT sum(idx_blks_read + idx_blks_hit) FROM pg_statio_user_indexes WHERE relname IN ('standings', 'members')`).Scan(&n))
	return n
}
