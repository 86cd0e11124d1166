package archive

// Final windows for other destinations than the archive: the archiver's steps, one at a time.

import (
	"context"
	"errors"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Describe returns the archive's description of a final window. The error is ErrChanged if the window is no longer
// final.
func (a *Archiver) Describe(ctx context.Context, c *boards.Closed) (store.Window, error) {
	first, err := a.look(ctx, c)
	if err != nil {
		return store.Window{}, err
	}
	return a.describe(&begun{Closed: c, first: first}), nil
}

// Unseal reopens a final window because another place has other standings of the same revision; its next sealing
// makes the next revision. Nothing is done if the window is no longer final or its retention is over.
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
