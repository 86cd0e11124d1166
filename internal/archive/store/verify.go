package store

import (
	"context"
	"fmt"
)

// Verify reads all rows of a copy that is whole again, and compares their number and checksum with
// the window's, and whether members are found at their rows: ErrDiffers where anything differs,
// ErrGone where the copy isn't there.
func (s *Store) Verify(ctx context.Context, id int64) error {
	w, err := s.ByID(ctx, id)
	if err != nil {
		return err
	}
	if w.State != Whole {
		return s.fail(ErrGone, "verify "+w.String())
	}
	count, sum, at, err := s.sum(ctx, &w)
	if err == nil && (count != w.Members || sum != w.Checksum) {
		err = fmt.Errorf("%w: it has %d rows with checksum %s, and was written with %d and %s", ErrDiffers, count, sum, w.Members, w.Checksum)
	}
	if err == nil {
		err = s.verifyMembers(ctx, &w, at)
	}
	return s.fail(err, "verify "+w.String())
}

// sum counts a copy's rows, in whatever state it is, and adds up their checksum and their places.
func (s *Store) sum(ctx context.Context, w *Window) (count int64, sum Checksum, at places, err error) {
	fields := len(w.Fields)
	for {
		var n int64
		page, cancel := context.WithTimeout(ctx, readLimit)
		last := count
		err := scanRows(page, s.read, func(r *Row) error {
			n, last = n+1, r.Rank
			sum.Add(r, fields)
			at.add(r.Rank, r.Member)
			return nil
		}, `SELECT `+rowColumns+` FROM standings WHERE window_id = $1 AND rank > $2 AND rank <= $3 ORDER BY rank`, w.ID, last, last+readAtOnce)
		cancel()
		if err != nil {
			return 0, 0, 0, err
		}
		if n == 0 {
			return count, sum, at, nil
		}
		if count += n; last != count {
			return 0, 0, 0, fmt.Errorf("%w: its %d first rows have ranks up to %d", ErrDiffers, count, last)
		}
	}
}
