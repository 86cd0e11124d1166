package reading

// Which boards and windows the archive has.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/standings/standings/internal/archive/store"
)

// keptFor is how long the list of the archive's boards serves, as catalogFor does of Redis's.
const keptFor = catalogFor

// keptBoards is that list as it was last read.
type keptBoards struct {
	read time.Time
	all  []store.Kept
}

// Archived are the boards and periods of which the archive has windows, by name; none where there is
// no archive. Windows that Redis has, too, are among them, boards and periods that aren't configured
// any more aren't: nobody can read those here. What it returns mustn't be changed.
func (r *Reader) Archived(ctx context.Context) ([]store.Kept, error) {
	a := r.archive
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	last := a.kept
	a.mu.Unlock()
	if !last.read.IsZero() && time.Since(last.read) < keptFor {
		return last.all, nil
	}
	var all []store.Kept
	err := a.use(ctx, a.Timeout, func(ctx context.Context, s *store.Store) (err error) {
		all, err = s.Kept(ctx)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(k store.Kept) bool {
		_, err := r.Period(k.Board, k.Period)
		return err != nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = keptBoards{time.Now(), all}
	return all, nil
}

// ArchivedWindows are the windows of a board and a period that the archive has, each once, the
// latest first, up to limit of those behind a place; none where there is no archive.
func (r *Reader) ArchivedWindows(ctx context.Context, board, period string, after store.Place, limit int) ([]store.Window, error) {
	if r.archive == nil {
		return nil, nil
	}
	var all []store.Window
	err := r.archive.use(ctx, r.archive.Timeout, func(ctx context.Context, s *store.Store) (err error) {
		all, err = s.Windows(ctx, store.Filter{Board: board, Period: period, Newest: true}, after, limit)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return all, err
}
