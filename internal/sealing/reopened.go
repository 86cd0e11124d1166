package sealing

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
)

// Known are the windows that a consumer knows to be final, by shard.
type Known interface {
	Sealed(shard int) []ledger.Window
	Unsealed(shard int, windows []ledger.Window)
}

// Reopened has a consumer forget the windows that aren't final any more.
func Reopened(ctx context.Context, all *boards.Boards, known Known, log *zap.Logger) error {
	var names []string
	for shard := range all.Shards() {
		windows := known.Sealed(shard)
		if len(windows) == 0 {
			continue
		}
		open, err := all.NotFinal(ctx, shard, windows)
		if err != nil {
			return err
		}
		known.Unsealed(shard, open)
		for _, w := range open {
			names = append(names, w.Listing())
		}
	}
	if slices.Sort(names); len(names) > 0 {
		names = slices.Compact(names)
		log.Info("windows that were final take events again", zap.Strings("windows", names[:min(len(names), mostNamed)]))
	}
	return nil
}
