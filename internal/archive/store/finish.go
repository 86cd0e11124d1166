package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Finish makes the copy whole, once all of its rows are in, and in the same transaction drops what
// it replaces: the backup before it, or, of a final window, all of its backups. Earlier revisions
// stay. It reads all rows again first: where they aren't what was written, the error is ErrDiffers.
// Finish of a whole copy does nothing. The rows of what was dropped are removed by Sweep.
func (w *Writing) Finish(ctx context.Context) error {
	return w.store.fail(w.finish(ctx), "finish "+w.window.String())
}

func (w *Writing) finish(ctx context.Context) error {
	if w.Whole() {
		return nil
	}
	// Nobody adds to what is complete, so the rows can be read outside of the transaction.
	if w.window.Written != w.window.Members {
		return fmt.Errorf("%w: %d of %d rows are in", ErrInvalid, w.window.Written, w.window.Members)
	}
	count, sum, _, err := w.store.sum(ctx, &w.window)
	if err != nil {
		return err
	}
	var now *Window
	err = w.store.transaction(ctx, w.fence, func(_ *sql.Conn, tx *sql.Tx) error {
		var err error
		if now, err = w.current(ctx, tx); err != nil || now.State == Whole {
			return err
		}
		if count != now.Members || count != now.Written || sum != now.Checksum {
			return fmt.Errorf("%w: it has %d rows with checksum %s, and was to have %d with %s", ErrDiffers, count, sum, now.Members, now.Checksum)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE windows SET state = 'removing'
			WHERE board = $1 AND period = $2 AND name = $3 AND revision = 0 AND state <> 'removing' AND id <> $4`,
			now.Board, now.Period, now.Name, now.ID); err != nil {
			return err
		}
		if err := w.store.complete(ctx, tx, now.ID); err != nil {
			return fmt.Errorf("have members found: %w", err)
		}
		now.State = Whole
		return changeOne(ctx, tx, `UPDATE windows SET state = 'whole' WHERE id = $1 AND state = 'writing'`, now.ID)
	})
	if err == nil {
		w.window = *now
		w.store.dialect.filled(ctx, w.store)
	}
	return err
}

// Discard drops a copy that isn't whole, so that Begin begins another: after ErrDiffers.
func (w *Writing) Discard(ctx context.Context) error {
	err := w.store.transaction(ctx, w.fence, func(_ *sql.Conn, tx *sql.Tx) error {
		now, err := w.current(ctx, tx)
		switch {
		case errors.Is(err, ErrGone):
			return nil
		case err != nil:
			return err
		case now.State == Whole:
			return fmt.Errorf("%w: it is whole", ErrInvalid)
		}
		return drop(ctx, tx, now.ID)
	})
	return w.store.fail(err, "discard "+w.window.String())
}

// drop makes a copy one that Sweep removes.
func drop(ctx context.Context, tx *sql.Tx, id int64) error {
	return changeOne(ctx, tx, `UPDATE windows SET state = 'removing' WHERE id = $1 AND state <> 'removing'`, id)
}
