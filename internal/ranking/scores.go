package ranking

// A window's members and their scores, as one shard has them, a slice at a time.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// Scored is a member and its score as Redis writes it, empty if it isn't there.
type Scored struct{ Member, Score string }

// ScanScores gives every member of a window, some hundred at once, waiting for pause
// between two calls. What is written meanwhile it may see or not, and it may give a member
// twice. It begins anew where another server has taken over.
func (s *Store) ScanScores(ctx context.Context, w *ledger.Window, pause time.Duration, each func([]Scored) error) error {
	return s.onOneServer(ctx, func() error {
		for cursor := "0"; ; {
			next, page, err := s.scores(ctx, w, cursor, scanned)
			if err != nil {
				return err
			}
			for some := range slices.Chunk(page, compared) {
				if err := each(some); err != nil {
					return err
				}
			}
			if cursor = next; cursor == "0" {
				return nil
			}
			if err := retry.Sleep(ctx, pause); err != nil {
				return err
			}
		}
	})
}

// Scores are the scores of some members in a window, in their order.
func (s *Store) Scores(ctx context.Context, w *ledger.Window, members []string) ([]Scored, error) {
	var all []Scored
	for some := range slices.Chunk(members, compared) {
		args := []any{""}
		for _, member := range some {
			args = append(args, member)
		}
		_, page, err := s.scores(ctx, w, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

func (s *Store) scores(ctx context.Context, w *ledger.Window, what ...any) (next string, page []Scored, err error) {
	key := s.keys.Window(w)
	reply, err := s.Call(ctx, lua.Scores, []string{key}, what...)
	if err != nil {
		return "", nil, fmt.Errorf("read the scores of %s: %w", key, err)
	}
	if len(reply) == 2 {
		next, _ = reply[0].(string)
		rows, failed := list(reply[1])
		if failed == nil && next != "" && len(rows)%2 == 0 {
			for i := 0; i < len(rows); i += 2 {
				page = append(page, Scored{rows[i], rows[i+1]})
			}
			return next, page, nil
		}
	}
	return "", nil, fmt.Errorf("read the scores of %s: %w", key, Unexpected(lua.Scores, reply))
}
