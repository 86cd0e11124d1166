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
	for row, err := range s.pages(ctx, w.ID, ofCopy) {
		if err != nil {
			return 0, 0, 0, err
		}
		count++
		sum.Add(&row, len(w.Fields))
		at.add(row.Rank, row.Member)
	}
	return count, sum, at, nil
}
