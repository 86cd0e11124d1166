package clients

// Bans, between the topic that keeps them and the standings.

import (
	"context"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
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
