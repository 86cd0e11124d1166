package clients

// Bans, between the topic that keeps them and the standings.

import (
	"context"
	"time"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// alignedStandings are a shard's, in line with the bans topic before a worker reads where it
// goes on. A worker does that at the start of a generation, and wherever the ledger isn't where
// it was: so that a Redis that was wiped, or went back, hides who is banned again before
// anything is applied to it.
type alignedStandings struct {
	redisStandings

	align func(context.Context) error
}

// State is the whole ledger and what stands beside it.
func (s alignedStandings) State(ctx context.Context) (ledger.State, error) {
	if err := s.align(ctx); err != nil {
		return ledger.State{}, err
	}
	return s.redisStandings.State(ctx)
}

// BansRights are the rights that run needs on the bans topic.
func BansRights(cfg *config.Config) []kafkaconn.Right {
	needs := []kafkaconn.Right{bans.Need(cfg.Kafka.BansTopic)}
	if cfg.API.Listen != config.Off && cfg.API.BansTokensFile != "" {
		needs = append(needs, bans.NeedToBan(cfg.Kafka.BansTopic))
	}
	return needs
}

// NewHidden are the standings of all shards as the bans need them.
func NewHidden(all *boards.Boards) bans.Standings { return hidden{all} }

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
