package explain

// This file reads the member's state from Redis: the standing and the ledger behind it in one call, then
// the rules of sweeps in progress and the bans.

import (
	"context"
	"errors"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// held contains everything that Redis stores about the member.
type held struct {
	board    ranking.Board
	standing *ranking.Standing // nil: the member has no standing
	// state is the state of the member's shard, read together with the standing. Its ledger shows which
	// events are in the standing.
	state      ledger.State
	incomplete []string // partitions of which the shard lacks events of the window
	shard      int
	of         ledger.Shards

	// The fields below are read a moment later. A window that is sealed in between has the same events.
	seal  ranking.Seal
	rules map[string]string // rules by fingerprint, and fingerprints by partition
	bans  []ranking.Ban
}

// banned returns "hidden" or "erased" if the member is not shown; empty otherwise.
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

// pending reports whether a ban is still being applied.
func (h *held) pending() bool {
	for _, b := range h.bans {
		if b.Pending {
			return true
		}
	}
	return false
}

// readHeld reads Redis. An empty prefix is not an error.
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
