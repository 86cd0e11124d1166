package app

import (
	"context"

	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
)

// BeforeCounting has what a worker does between reading where it continues and applying anything. A worker reads that at
// the start of a generation and whenever the ledger has moved.
type BeforeCounting struct {
	// Begin records the number of shards, if a shard is empty and the worker may begin it.
	Begin func(context.Context) error
	// Align brings the standings in line with the bans topic; nil if nobody can be banned. The order matters:
	//
	//	the worker                           Redis
	//	reads the ledger: 120
	//	                                     goes back: to 100, without a ban
	//	hides the banned member again
	//	applies from 120: the ledger moved
	//
	// In the other order the worker would read 100 after it had hidden the member, and count for a member who is shown.
	Align func(context.Context) error
}

// consumedStandings are the standings of one shard for a consumer.
type consumedStandings struct {
	shards.Standings

	before BeforeCounting
}

// State returns the whole ledger and what is stored next to it.
func (s consumedStandings) State(ctx context.Context) (ledger.State, error) {
	state, err := s.Standings.State(ctx)
	if err == nil && state.Schema == "" && s.before.Begin != nil {
		err = s.before.Begin(ctx)
	}
	if err == nil && s.before.Align != nil {
		err = s.before.Align(ctx)
	}
	if err != nil {
		return ledger.State{}, err
	}
	return state, nil
}
