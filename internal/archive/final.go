package archive

// A final window as whoever keeps it elsewhere reads it: what an archiver does, a step at a time.

import (
	"context"
	"errors"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Describe is the archive's description of a final window; ErrChanged if it isn't final any more.
func (a *Archiver) Describe(ctx context.Context, c *boards.Closed) (store.Window, error) {
	first, err := a.look(ctx, c)
	if err != nil {
		return store.Window{}, err
	}
	return a.describe(&begun{Closed: c, first: first}), nil
}

// Unseal takes a window's seal back, as another place has other standings of the same revision: its
// next seal is the next revision. A window that isn't final any more needs none, nor one whose retention is over.
func Unseal(ctx context.Context, all *boards.Boards, c *boards.Closed, why string) error {
	now, err := all.Now(ctx)
	if err == nil {
		_, err = all.Unseal(ctx, c.Window, now, why)
	}
	if errors.Is(err, ranking.ErrNotFinal) || errors.Is(err, ranking.ErrOver) {
		return nil
	}
	return err
}
