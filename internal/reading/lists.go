package reading

// The list of boards and windows in the archive.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/standings/standings/internal/archive/store"
)

// keptFor is how long the list of the archive's boards is reused, like catalogFor for the list of Redis.
const keptFor = catalogFor

// keptBoards is the list as it was last read.
type keptBoards struct {
	read time.Time
	all  []store.Kept
}

// Archived returns the boards and periods of which the archive has windows, sorted by name; none without an
// archive. It includes windows that are also in Redis. It omits boards and periods that are no longer configured,
// since they cannot be read. The caller must not modify the result.
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

// ArchivedWindows returns the windows that the archive has of a board and a period: each once, latest first, at
// most limit of those after a place; none without an archive.
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
