package explain

// What Redis holds: the member's standing and the ledger that it was made by, of one instant;
// and beside it by which rules partitions are counted, and who is banned.

import (
	"context"
	"errors"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// held is what Redis holds of the member.
type held struct {
	board    ranking.Board
	standing *ranking.Standing // nil: the member isn't there
	// state is what stands beside the scores in the member's own shard: its ledger says which
	// events are in the standing.
	state      ledger.State
	incomplete []string // partitions of which that shard lacks events of the window
	shard      int
	of         ledger.Shards

	// As of a moment later. What is sealed in between counts no more than was in before.
	seal  ranking.Seal
	rules map[string]string // texts by fingerprints, and fingerprints by partitions
	bans  []ranking.Ban
}

// banned says how the member isn't shown: hidden or erased; empty where they are.
func (h *held) banned() string {
	how := ""
	for _, b := range h.bans {
		if b.Erased {
			return "erased"
		}
		how = "hidden"
	}
	return how
}

// pending reports whether a ban is being carried out.
func (h *held) pending() bool {
	for _, b := range h.bans {
		if b.Pending {
			return true
		}
	}
	return false
}

// readHeld asks Redis. A prefix under which there is nothing is no error.
func readHeld(ctx context.Context, r *app.Reader, q *question) (*held, error) {
	h := &held{of: r.Boards.Of()}
	h.shard = h.of.Of(q.hash)
	var err error
	h.board, err = r.Boards.RankOfHidden(ctx, q.board, q.window, q.member)
	if other, ok := errors.AsType[*ranking.SchemaError](err); ok && other.Found == "" {
		err = nil
	}
	if err != nil {
		return nil, app.ExplainRedis(ctx, err, r.Config)
	}
	if all := h.board.Standings; len(all) > 0 && all[0].Rank > 0 {
		h.standing = &all[0]
	}
	h.state = h.board.Beside
	if len(h.board.Shards) > 0 {
		h.state = h.board.Shards[h.shard]
	}
	if h.incomplete, err = ranking.Incomplete(&h.state, q.board, string(q.window.Period), q.window.Start); err != nil {
		return nil, err
	}
	home := r.Boards.Shards()[h.shard]
	later, err := home.State(ctx)
	if err != nil {
		return nil, app.ExplainRedis(ctx, err, r.Config)
	}
	h.rules = later.Rules
	window := ledger.Window{Board: q.board, Period: string(q.window.Period), Name: q.window.Name}
	if h.seal, err = home.SealOf(ctx, window.Listing()); err != nil {
		return nil, app.ExplainRedis(ctx, err, r.Config)
	}
	if h.bans, err = home.BansOf(ctx, q.board, q.member); err != nil {
		return nil, app.ExplainRedis(ctx, err, r.Config)
	}
	return h, nil
}
