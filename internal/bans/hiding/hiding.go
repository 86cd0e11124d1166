// Package hiding is what bans do to the standings: members are hidden in all shards, and shown again.
// It is between the bans, which state what they need of standings, and the ranking, which has them.
package hiding

import (
	"context"
	"time"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// In are the standings of all shards as bans need them.
func In(all *boards.Boards) bans.Standings { return hidden{all} }

type hidden struct{ all *boards.Boards }

// Ban hides a member, or erases them.
func (h hidden) Ban(ctx context.Context, b bans.Ban) error {
	return ranking.BanEach(ctx, h.all.Shards(), ranking.Ban{Board: b.Board, Member: b.Member, Erased: b.Erased}, (*ranking.Store).Ban)
}

// Unban shows a member again.
func (h hidden) Unban(ctx context.Context, k bans.Key) error {
	return ranking.BanEach(ctx, h.all.Shards(), ranking.Ban{Board: k.Board, Member: k.Member}, (*ranking.Store).Unban)
}

// Banned are the bans that Redis holds.
func (h hidden) Banned(ctx context.Context) (all []bans.Ban, err error) {
	found, err := ranking.BannedEach(ctx, h.all.Shards())
	for _, b := range found {
		all = append(all, bans.Ban{Key: bans.Key{Board: b.Board, Member: b.Member}, Erased: b.Erased, Pending: b.Pending})
	}
	return all, err
}

// Now is Redis's time.
func (h hidden) Now(ctx context.Context) (time.Time, error) { return h.all.Now(ctx) }
