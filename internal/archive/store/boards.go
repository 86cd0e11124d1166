package store

import (
	"context"
	"time"
)

// Kept summarises the windows of a board and period in the archive.
type Kept struct {
	Board, Period     string
	Windows           int64 // a window with several copies counts once
	First, Last       string
	Starts, LastStart time.Time // start of the first and of the last window
}

// Kept lists the boards and periods that have complete copies, sorted by name.
func (s *Store) Kept(ctx context.Context) ([]Kept, error) {
	all, err := s.kept(ctx)
	return all, s.fail(err, "list boards")
}

func (s *Store) kept(ctx context.Context) (all []Kept, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	const named = `(SELECT min(name) FROM windows w WHERE w.start_at = `
	const of = ` AND w.board = k.board AND w.period = k.period AND w.state = 'whole')`
	rows, err := s.read.QueryContext(ctx, `WITH k AS (
			SELECT board, period, count(DISTINCT name) AS n, min(start_at) AS first, max(start_at) AS last
			FROM windows WHERE state = 'whole' GROUP BY board, period)
		SELECT board, period, n, first, last, `+named+`k.first`+of+`, `+named+`k.last`+of+` FROM k ORDER BY board, period`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		var k Kept
		var first, last instant
		if err := rows.Scan(&k.Board, &k.Period, &k.Windows, &first, &last, &k.First, &k.Last); err != nil {
			return nil, err
		}
		k.Starts, k.LastStart = first.time(), last.time()
		all = append(all, k)
	}
	return all, rows.Err()
}
