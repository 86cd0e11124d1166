package archive

// Erased members: Redis no longer has their rows, and the archiver removes their rows from every copy.

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
)

// erase removes newly erased members from the archive. A member that may still have rows on a shard waits for the
// next pass, since these rows could be copied after the erasure.
func (a *Archiver) erase(ctx context.Context, f store.Fence) error {
	hidden, err := ranking.HiddenEach(ctx, a.Boards.Shards(), a.hiddenBy)
	if err != nil {
		return fmt.Errorf("find erased members: %w", err)
	}
	if hidden == a.hiddenBy && a.erased != nil {
		return nil
	}
	if a.erased == nil {
		if a.erased, err = a.Store.Erasures(ctx); err != nil {
			return err
		}
	}
	for _, member := range hidden.Gone() {
		if a.erased[member] {
			continue
		}
		rows, err := a.Store.Erase(ctx, f, member)
		if err != nil {
			return err
		}
		a.erased[member] = true
		a.Log.Info("a member is erased from the archive", zap.Int64("rows", rows))
	}
	a.hiddenBy = hidden
	return nil
}
