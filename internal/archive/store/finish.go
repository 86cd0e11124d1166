package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Finish completes the copy once all of its rows are in, and drops the window's backups in the same transaction;
// Sweep removes them later. Earlier revisions stay. Finish first reads all rows again: if they differ from what
// was written, the error is ErrDiffers. Finish of a complete copy does nothing.
func (w *Writing) Finish(ctx context.Context) error {
	return w.store.fail(w.finish(ctx), "finish "+w.window.String())
}

func (w *Writing) finish(ctx context.Context) error {
	if w.Whole() {
		return nil
	}
	if w.window.Final() && w.window.Written != w.window.Places() {
		return fmt.Errorf("%w: %d of %d rows are in", ErrInvalid, w.window.Written, w.window.Places())
	}
	if !w.window.Final() {
		if err := w.rank(ctx); err != nil {
			return err
		}
	}
	// No transaction adds rows to a copy that has all of them, so they can be read outside the transaction.
	is, _, err := w.store.sum(ctx, &w.window)
	if err != nil {
		return err
	}
	var now *Window
	err = w.store.transaction(ctx, w.fence, func(_ *sql.Conn, tx *sql.Tx) error {
		var err error
		if now, err = w.current(ctx, tx); err != nil || now.State == Whole {
			return err
		}
		if !now.Final() {
			now.Checksum = is.sum
		}
		if is != now.counted() || is.rows() != now.Written {
			return fmt.Errorf("%w: it has %s, and was to have %s", ErrDiffers, is, now.counted())
		}
		if _, err := tx.ExecContext(ctx, `UPDATE windows SET state = 'removing'
			WHERE board = $1 AND period = $2 AND name = $3 AND revision = 0 AND state <> 'removing' AND id <> $4`,
			now.Board, now.Period, now.Name, now.ID); err != nil {
			return err
		}
		if err := w.store.complete(ctx, tx, now.ID); err != nil {
			return fmt.Errorf("fill the table of members: %w", err)
		}
		if err := changeOne(ctx, tx, `UPDATE windows SET state = 'whole', checksum = $2 WHERE id = $1 AND state = 'writing'`, now.ID, is.sum.String()); err != nil {
			return err
		}
		if err := eraseFrom(ctx, tx, now.ID); err != nil {
			return err
		}
		now, err = w.current(ctx, tx)
		return err
	})
	if err == nil {
		w.window = *now
		w.store.dialect.filled(ctx, w.store)
	}
	return err
}

// rank copies the rows of an open window to a new copy in Redis's order: by score, then by the bytes of the id,
// both descending. Each member occurs once; if it was read several times, the row read last counts.
func (w *Writing) rank(ctx context.Context) error {
	var ranked Window
	err := w.store.transaction(ctx, w.fence, func(_ *sql.Conn, tx *sql.Tx) error {
		scanned, err := w.current(ctx, tx)
		if err != nil {
			return err
		}
		if err := drop(ctx, tx, scanned.ID); err != nil {
			return err
		}
		if ranked, err = w.store.insertWindow(ctx, tx, *scanned); err != nil {
			return err
		}
		if err := w.store.dialect.takesLong(ctx, tx); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO standings (window_id, place, rank, member, points, fields, score, reached_at)
			SELECT CAST($2 AS bigint), row_number() OVER placed, CASE WHEN rank IS NOT NULL THEN count(rank) OVER placed END, member, points, fields, score, reached_at
			FROM (SELECT *, row_number() OVER (PARTITION BY member ORDER BY place DESC) AS again FROM standings WHERE window_id = $1) AS rows
			WHERE again = 1 WINDOW placed AS (ORDER BY score DESC, member DESC ROWS UNBOUNDED PRECEDING) ORDER BY score DESC, member DESC`, scanned.ID, ranked.ID)
		if err != nil {
			return err
		}
		if ranked.Written, err = done.RowsAffected(); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(rank), 0) FROM standings WHERE window_id = $1`, ranked.ID).Scan(&ranked.Members); err != nil {
			return err
		}
		ranked.Hidden = ranked.Written - ranked.Members
		return changeOne(ctx, tx, `UPDATE windows SET members = $2, hidden = $3, rows_written = $4 WHERE id = $1`, ranked.ID, ranked.Members, ranked.Hidden, ranked.Written)
	})
	if err == nil {
		w.window = ranked
	}
	return err
}

// Discard drops an unfinished copy, so that Begin starts another one: after ErrDiffers.
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

// drop marks a copy for removal by Sweep.
func drop(ctx context.Context, tx *sql.Tx, id int64) error {
	return changeOne(ctx, tx, `UPDATE windows SET state = 'removing' WHERE id = $1 AND state <> 'removing'`, id)
}
