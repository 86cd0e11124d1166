package store

import (
	"context"
	"errors"
	"fmt"
)

// Verify reads all rows of a complete copy again. It compares their number and checksum with the window's, and
// checks that the table of members matches the rows. The error is ErrDiffers if anything differs, and ErrGone if
// the copy is missing or not complete.
func (s *Store) Verify(ctx context.Context, id int64) error {
	w, err := s.ByID(ctx, id)
	if err != nil {
		return err
	}
	if w.State != Whole {
		return s.fail(ErrGone, "verify "+w.String())
	}
	is, at, err := s.sum(ctx, &w)
	if err == nil && is != w.counted() {
		err = fmt.Errorf("%w: it has %s, and was written with %s", ErrDiffers, is, w.counted())
	}
	if err == nil {
		err = s.verifyMembers(ctx, &w, at)
	}
	if now, failed := s.ByID(ctx, id); errors.Is(err, ErrDiffers) && failed == nil && now.Erased != w.Erased {
		return s.Verify(ctx, id) // a row was erased meanwhile
	}
	return s.fail(err, "verify "+w.String())
}

// counted are the numbers of a copy's rows by kind, and their checksum.
type counted struct {
	shown, hidden, erased int64
	sum                   Checksum
}

func (c counted) String() string {
	return fmt.Sprintf("%d rows shown, %d hidden and %d erased, with checksum %s", c.shown, c.hidden, c.erased, c.sum)
}

func (c counted) rows() int64 { return c.shown + c.hidden + c.erased }

func (w *Window) counted() counted { return counted{w.Members, w.Hidden, w.Erased, w.Checksum} }

// sum returns the numbers and the checksum of a copy's rows, in any state, and the checksum of their places.
func (s *Store) sum(ctx context.Context, w *Window) (is counted, at places, err error) {
	for row, err := range s.pages(ctx, w.ID, ofCopy) {
		if err != nil {
			return is, 0, err
		}
		is.sum.Add(&row, len(w.Fields))
		switch {
		case row.Erased():
			is.erased++
			continue
		case row.Rank == 0:
			is.hidden++
		default:
			is.shown++
		}
		at.add(row.Place, row.Member)
	}
	return is, at, nil
}
