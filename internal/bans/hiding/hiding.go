// Package hiding applies bans to the standings: it hides members on all shards, and shows them again. It connects
// package bans, which defines what it needs of standings, with package ranking, which implements them.
package hiding

import (
	"context"
	"time"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// In returns the standings of all shards for package bans.
func In(all *boards.Boards) bans.Standings { return hidden{all} }

type hidden struct{ all *boards.Boards }

// Ban hides or erases a member.
func (h hidden) Ban(ctx context.Context, b bans.Ban) error {
	return ranking.BanEach(ctx, h.all.Shards(), ranking.Ban{Board: b.Board, Member: b.Member, Erased: b.Erased}, (*ranking.Store).Ban)
}

// Unban shows a member again.
func (h hidden) Unban(ctx context.Context, k bans.Key) error {
	return ranking.BanEach(ctx, h.all.Shards(), ranking.Ban{Board: k.Board, Member: k.Member}, (*ranking.Store).Unban)
}

// Banned returns the bans in Redis.
func (h hidden) Banned(ctx context.Context) (all []bans.Ban, err error) {
	found, err := ranking.BannedEach(ctx, h.all.Shards())
	for _, b := range found {
		all = append(all, bans.Ban{Key: bans.Key{Board: b.Board, Member: b.Member}, Erased: b.Erased, Pending: b.Pending})
	}
	return all, err
}

// Now returns Redis's time.
func (h hidden) Now(ctx context.Context) (time.Time, error) { return h.all.Now(ctx) }
