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
	last, err = scanRow(w.store.read.QueryRowContext(ctx, `SELECT `+rowColumns+ofCopy+` AND place = $2`, w.window.ID, w.window.Written).Scan)
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

// Append adds rows, or none of them. The first row's place must follow the last place written; otherwise the error
// is ErrDiffers. So after a call whose outcome is unknown, Begin finds where the copy continues. About ten thousand
// rows per call are best.
//
// Rows of an open window come in any order, and a member may occur several times. Their places are consecutive
// numbers from 1, as are the ranks of shown members; Finish assigns the real ones.
func (w *Writing) Append(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	var now *Window
	err := w.store.transaction(ctx, w.fence, func(conn *sql.Conn, tx *sql.Tx) error {
		var err error
		if now, err = w.current(ctx, tx); err != nil {
			return err
		}
		if now.State != Unfinished || rows[0].Place != now.Written+1 {
			return fmt.Errorf("%w: %d rows are in", ErrDiffers, now.Written)
		}
		return w.add(ctx, conn, tx, now, rows)
	})
	if err != nil {
		return w.store.fail(err, fmt.Sprintf("add the places %d to %d of %s", rows[0].Place, rows[len(rows)-1].Place, &w.window))
	}
	w.window = *now
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

// add adds rows and updates the copy's row count and checksum.
func (w *Writing) add(ctx context.Context, conn *sql.Conn, tx *sql.Tx, now *Window, rows []Row) error {
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
