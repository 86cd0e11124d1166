package store

import (
	"context"
	"strconv"
	"time"
)

// Filter selects copies. Empty fields select all.
type Filter struct {
	Board, Period, Name string
	From, To            time.Time // windows that start in [From, To)
	Backups             bool      // only backups
	Newest              bool      // only the copy of each window that Window returns
	All                 bool      // also copies that are not complete
}

// Place is a position in the order of Windows, directly after a copy.
type Place struct {
	Start time.Time
	ID    int64
}

// Place returns the position after this copy.
func (w *Window) Place() Place { return Place{w.Start, w.ID} }

// Windows lists copies, latest start first, and the newest copy first among equal starts. It returns at most limit
// of those after a place; the zero Place starts at the first.
func (s *Store) Windows(ctx context.Context, f Filter, after Place, limit int) ([]Window, error) {
	where, args := "TRUE", []any{limit}
	add := func(condition string, values ...any) {
		where += " AND " + condition
		for _, v := range values {
			args = append(args, v)
			where += "$" + strconv.Itoa(len(args))
		}
	}
	if !f.All {
		add("w.state = 'whole'")
	}
	for column, value := range map[string]string{"board": f.Board, "period": f.Period, "name": f.Name} {
		if value != "" {
			add("w."+column+" = ", value)
		}
	}
	if !f.From.IsZero() {
		add("w.start_at >= ", s.dialect.at(f.From.UnixMilli()))
	}
	if !f.To.IsZero() {
		add("w.start_at < ", s.dialect.at(f.To.UnixMilli()))
	}
	if f.Backups {
		add("w.revision = 0")
	}
	if f.Newest {
		add(`NOT EXISTS (SELECT 1 FROM windows n WHERE n.board = w.board AND n.period = w.period AND n.name = w.name
			AND n.state = 'whole' AND n.revision > w.revision)`)
	}
	if after.ID != 0 {
		add("(w.start_at, w.id) < (", s.dialect.at(after.Start.UnixMilli()))
		args = append(args, after.ID)
		where += ", $" + strconv.Itoa(len(args)) + ")"
	}
	all, err := s.windows(ctx, `SELECT `+windowColumns+` FROM windows w WHERE `+where+` ORDER BY start_at DESC, id DESC LIMIT $1`, args...)
	return all, s.fail(err, "list windows")
}

func (s *Store) windows(ctx context.Context, query string, args ...any) (all []Window, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports all errors
	for rows.Next() {
		w, err := scanWindow(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, *w)
	}
	return all, rows.Err()
}

// Window returns the newest complete copy of a window: its latest revision, else its backup.
func (s *Store) Window(ctx context.Context, board, period, name string) (Window, error) {
	return s.window(ctx, `board = $1 AND period = $2 AND name = $3 AND state = 'whole' ORDER BY revision DESC LIMIT 1`, board, period, name)
}

// Revision returns the complete copy of a revision; revision 0 is the backup.
func (s *Store) Revision(ctx context.Context, board, period, name string, revision int64) (Window, error) {
	return s.window(ctx, `board = $1 AND period = $2 AND name = $3 AND state = 'whole' AND revision = $4`, board, period, name, revision)
}

// ByID returns a copy in any state.
func (s *Store) ByID(ctx context.Context, id int64) (Window, error) {
	return s.window(ctx, `id = $1`, id)
}

func (s *Store) window(ctx context.Context, where string, args ...any) (Window, error) {
	all, err := s.windows(ctx, `SELECT `+windowColumns+` FROM windows WHERE `+where, args...)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Window{}, s.fail(err, "find a window")
	}
	return all[0], nil
}
