package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// Touch has the whole backup of an id be as of a later time: its rows are those that the window had
// then. Of now AsOf, Until, Ledger and Incomplete count. The error is ErrGone where the backup isn't
// there any more.
func (s *Store) Touch(ctx context.Context, f Fence, id int64, now *Window) error {
	if err := now.check(); err != nil {
		return s.fail(err, "have a backup be of now")
	}
	counted, err := json.Marshal(now.Ledger)
	if err != nil {
		return err
	}
	var incomplete any
	if len(now.Incomplete) > 0 {
		text, err := json.Marshal(now.Incomplete)
		if err != nil {
			return err
		}
		incomplete = string(text)
	}
	err = s.transaction(ctx, f, func(_ *sql.Conn, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE windows SET as_of = $2, read_until = $3, ledger = $4, incomplete = $5, taken_by = $6
			WHERE id = $1 AND state = 'whole' AND revision = 0`,
			id, s.dialect.at(now.AsOf.UnixMilli()), s.dialect.at(now.Until.UnixMilli()), string(counted), incomplete, f.Token)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err == nil && n != 1 {
			err = ErrGone
		}
		return err
	})
	return s.fail(err, fmt.Sprintf("have the backup %d be as of %v", id, now.AsOf))
}
