package explain

// This file reads the member's state from Redis: the standing and the ledger behind it in one call, then
// the rules, the seal and the bans.

import (
	"context"
	"errors"
	"fmt"
	"math"

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
	seal    ranking.Seal
	rules   map[string]string // fingerprints of rules by partition
	banned  string            // hidden or erased if the member is not shown; empty otherwise
	pending bool              // a ban is still being applied
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
	bans, err := home.BansOf(ctx, q.board, q.member)
	for _, b := range bans {
		h.pending = h.pending || b.Pending
		if b.Erased {
			h.banned = "erased"
		} else if h.banned == "" {
			h.banned = "hidden"
		}
	}
	return h, app.ExplainRedis(ctx, err, r.Config)
}

// source returns a partition with its state in Redis.
func (h *held) source(p ledger.Partition) (*source, error) {
	s := &source{Partition: p, text: h.state.Ledger[p.String()]}
	var err error
	if s.text != "" {
		if s.position, err = ledger.Counted(s.text); err != nil {
			return nil, fmt.Errorf("the ledger of %v: %w", p, err)
		}
	}
	if text := h.state.Origins[p.String()]; text != "" {
		if s.began, err = ledger.ParseOrigin(text); err != nil {
			return nil, fmt.Errorf("%v: %w", p, err)
		}
	}
	for _, passed := range h.seal.Passed {
		if err := s.pass(passed.From, passed.To); err != nil {
			return nil, err
		}
	}
	if h.seal.Ledger != nil {
		return s, s.pass(h.seal.Ledger, nil)
	}
	return s, nil
}

// pass records that the window was final between two ledgers of seals; to is nil if it is still final. A partition that
// was added later has position 0.
func (s *source) pass(from, to map[string]string) error {
	at := func(of map[string]string) (ledger.Position, error) {
		if text := of[s.String()]; text != "" {
			p, err := ledger.Counted(text)
			if err != nil {
				return p, fmt.Errorf("read the ledger of the seal: %w", err)
			}
			return p, nil
		}
		return ledger.At(0), nil
	}
	began, err := at(from)
	if err != nil {
		return err
	}
	ended := ledger.At(math.MaxInt64)
	if to != nil {
		ended, err = at(to)
	}
	s.passed = append(s.passed, between{began, ended})
	return err
}
