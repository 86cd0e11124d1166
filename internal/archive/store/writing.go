package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Writing is a copy that a leader writes.
type Writing struct {
	store  *Store
	fence  Fence
	window Window
}

// Window returns the copy's current state in the archive.
func (w *Writing) Window() Window { return w.window }

// Whole reports that the archive already has this revision, possibly of another seal, so there is nothing to
// write.
func (w *Writing) Whole() bool { return w.window.State == Whole }

// Written returns the number of rows written.
func (w *Writing) Written() int64 { return w.window.Written }

// Begin finds the complete copy of a final window's revision, continues an unfinished copy of the same seal, or
// starts one. It drops any other unfinished copy of the revision, and Sweep removes it. The archive sets ID,
// Written, Checksum and State.
func (s *Store) Begin(ctx context.Context, f Fence, wanted Window) (*Writing, error) {
	if err := wanted.check(); err != nil {
		return nil, s.fail(err, "begin a copy")
	}
	w := &Writing{store: s, fence: f}
	err := s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) error {
		there, err := s.begun(ctx, tx, &wanted, Whole)
		if err == nil && there != nil && there.Final() {
			w.window = *there
			return nil
		}
		if err == nil {
			there, err = s.begun(ctx, tx, &wanted, Unfinished)
		}
		if err != nil {
			return err
		}
		if there != nil && there.continues(&wanted) {
			w.window = *there
			return nil
		}
		if there != nil {
			if err := drop(ctx, tx, there.ID); err != nil {
				return err
			}
		}
		w.window, err = s.insertWindow(ctx, tx, wanted)
		return err
	})
	if err != nil {
		return nil, s.fail(err, "begin a copy of "+wanted.String())
	}
	return w, nil
}

// Last returns the last row written, and the number of rows written that are shown. At least one row must be
// written.
func (w *Writing) Last(ctx context.Context) (last Row, shown int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	err = scanRows(ctx, w.store.read, func(r *Row) error { last = *r; return nil },
		`SELECT `+rowColumns+ofCopy+` AND place = $2`, w.window.ID, w.window.Written)
	if err == nil {
		err = w.store.one(ctx, `SELECT coalesce(max(rank), 0) FROM standings WHERE window_id = $1`, []any{w.window.ID}, &shown)
	}
	return last, shown, w.store.fail(err, "read the last row of "+w.window.String())
}

// begun returns the copy of a window's revision in a state. There is at most one.
func (s *Store) begun(ctx context.Context, tx *sql.Tx, w *Window, state State) (*Window, error) {
	there, err := scanWindow(tx.QueryRowContext(ctx, `SELECT `+windowColumns+` FROM windows
		WHERE board = $1 AND period = $2 AND name = $3 AND revision = $4 AND state = $5`,
		w.Board, w.Period, w.Name, w.Revision, string(state)).Scan)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return there, err
}

func (s *Store) insertWindow(ctx context.Context, tx *sql.Tx, w Window) (Window, error) {
	values, err := s.values(&w)
	if err != nil {
		return w, err
	}
	w.Written, w.Checksum, w.State = 0, 0, Unfinished
	err = tx.QueryRowContext(ctx, `INSERT INTO windows (`+described+`, members, hidden, state)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 'writing') RETURNING id`, append(values, w.Members, w.Hidden)...).Scan(&w.ID)
	return w, err
}

// Append adds rows. The first row's place must follow the last place written, or must be written already: then the
// rows must be the same as before, or the error is ErrDiffers. So a call whose outcome is unknown can be repeated,
// and no row is added twice or omitted. Either all of the rows are added, or none. About ten thousand rows per
// call are best.
//
// Rows of an open window come in any order, and a member may occur several times. Their places are consecutive
// numbers from 1, as are the ranks of shown members; Finish assigns the real ones.
func (w *Writing) Append(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	if err := w.checkRows(rows); err != nil {
		return w.fail(err, rows)
	}
	var now *Window
	err := w.store.transaction(ctx, w.fence, func(conn *sql.Conn, tx *sql.Tx) error {
		var err error
		if now, err = w.current(ctx, tx); err != nil {
			return err
		}
		first := rows[0].Place
		if first > now.Written+1 {
			return fmt.Errorf("%w: %d rows are in, and the next are from place %d on", ErrInvalid, now.Written, first)
		}
		again := min(now.Written-first+1, int64(len(rows)))
		if again > 0 {
			if err := w.same(ctx, tx, rows[:again]); err != nil {
				return err
			}
		}
		fresh := rows[again:]
		if len(fresh) == 0 {
			return nil
		}
		if now.State != Unfinished {
			return fmt.Errorf("%w: it is whole with %d rows", ErrDiffers, now.Written)
		}
		return w.add(ctx, conn, tx, now, fresh)
	})
	if err != nil {
		return w.fail(err, rows)
	}
	w.window = *now
	return nil
}

func (w *Writing) fail(err error, rows []Row) error {
	return w.store.fail(err, fmt.Sprintf("add the places %d to %d of %s", rows[0].Place, rows[len(rows)-1].Place, &w.window))
}

// checkRows refuses impossible rows: places with gaps, and rising scores in a final window.
func (w *Writing) checkRows(rows []Row) error {
	last := rows[len(rows)-1].Place
	if rows[0].Place < 1 || w.window.Final() && last > w.window.Places() {
		return fmt.Errorf("%w: it has %d rows", ErrInvalid, w.window.Places())
	}
	for i := range rows {
		if err := rows[i].check(); err != nil {
			return err
		}
		if i > 0 && (rows[i].Place != rows[i-1].Place+1 || w.window.Final() && rows[i].Score > rows[i-1].Score) {
			return fmt.Errorf("%w: place %d with score %v follows place %d with %v", ErrInvalid,
				rows[i].Place, rows[i].Score, rows[i-1].Place, rows[i-1].Score)
		}
	}
	return nil
}

// current reads the copy's current state. The error is ErrGone if another copy has replaced it.
func (w *Writing) current(ctx context.Context, tx *sql.Tx) (*Window, error) {
	now, err := scanWindow(tx.QueryRowContext(ctx, `SELECT `+windowColumns+` FROM windows WHERE id = $1`, w.window.ID).Scan)
	if errors.Is(err, ErrNotFound) || err == nil && now.State == Removing {
		return nil, ErrGone
	}
	return now, err
}

// same compares rows with the rows written before.
func (w *Writing) same(ctx context.Context, tx *sql.Tx, rows []Row) error {
	i := 0
	err := scanRows(ctx, tx, func(r *Row) error {
		if *r != rows[i] {
			return fmt.Errorf("%w: place %d is %+v, and was to be %+v", ErrDiffers, r.Place, *r, rows[i])
		}
		i++
		return nil
	}, `SELECT `+rowColumns+` FROM standings WHERE window_id = $1 AND place BETWEEN $2 AND $3 ORDER BY place`,
		w.window.ID, rows[0].Place, rows[len(rows)-1].Place)
	if err == nil && i != len(rows) {
		return fmt.Errorf("%w: of the places %d to %d there are %d", ErrDiffers, rows[0].Place, rows[len(rows)-1].Place, i)
	}
	return err
}

// add adds rows and updates the copy's row count and checksum.
func (w *Writing) add(ctx context.Context, conn *sql.Conn, tx *sql.Tx, now *Window, rows []Row) error {
	if now.Final() && now.Written > 0 {
		var above float64
		err := tx.QueryRowContext(ctx, `SELECT score FROM standings WHERE window_id = $1 AND place = $2`, now.ID, now.Written).Scan(&above)
		if err != nil {
			return fmt.Errorf("read the row above: %w", found(err))
		}
		if rows[0].Score > above {
			return fmt.Errorf("%w: place %d with score %v follows one with %v", ErrInvalid, rows[0].Place, rows[0].Score, above)
		}
	}
	if err := w.store.dialect.insert(ctx, conn, tx, now.ID, now.names(), rows); err != nil {
		return err
	}
	was := now.Written
	for i := range rows {
		now.Checksum.Add(&rows[i], len(now.Fields))
	}
	now.Written += int64(len(rows))
	// The leader's row already excludes other writers; if that ever failed, comparing rows_written would detect
	// it.
	return changeOne(ctx, tx, `UPDATE windows SET rows_written = $2, checksum = $3 WHERE id = $1 AND rows_written = $4`,
		now.ID, now.Written, now.Checksum.String(), was)
}

// changeOne executes a statement that must change exactly one row.
func changeOne(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	done, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("%d rows were changed, and one was to be", n), err)
	}
	return nil
}
