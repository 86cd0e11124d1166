package status

import (
	"context"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// shardStates holds the state or the error of each shard.
type shardStates struct {
	stores   []*ranking.Store
	states   []ledger.State
	errs     []error
	problems []string
	borders  ranking.SettledBorders // settled bounds of windows
}

func askShards(ctx context.Context, r *app.Reader) shardStates {
	s := shardStates{stores: r.Boards.Shards()}
	s.states, s.errs = r.Boards.States(ctx)
	s.problems = app.ExplainShards(ctx, s.errs, r.Config)
	var err error
	if s.borders, err = r.Boards.SettledBorders(ctx); err != nil && s.errs[0] == nil {
		s.problems = append(s.problems, app.ExplainRedis(ctx, err, r.Config).Error())
	}
	return s
}

// together combines the states of the shards that answered; nil if none did.
func (s *shardStates) together() *ledger.State {
	var known []ledger.State
	for i, st := range s.states {
		if s.errs[i] == nil {
			known = append(known, st)
		}
	}
	if len(known) == 0 {
		return nil
	}
	all := ledger.Together(known)
	return &all
}
