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
			next, page, err := s.scores(ctx, w, "scan", cursor, scanned)
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
		args := []any{"members"}
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
	next, members, scores, err := s.page(ctx, []string{s.keys.Window(w)}, what...)
	for i, member := range members {
		page = append(page, Scored{member, scores[0][i]})
	}
	return next, page, err
}

// page reads some members of sorted sets, as of one moment, and their scores in each of the sets, empty if they aren't
// there. What is read: scan, a cursor and about how many members of the first set; or members, and those.
func (s *Store) page(ctx context.Context, sets []string, what ...any) (next string, members []string, scores [][]string, err error) {
	reply, err := s.Call(ctx, lua.Page, append(sets[:1:1], sets...), append([]any{""}, what...)...)
	if err != nil {
		return "", nil, nil, fmt.Errorf("read the scores of %s: %w", sets[0], err)
	}
	if len(reply) != 3+len(sets) || reply[0] != "scores" {
		return "", nil, nil, fmt.Errorf("read the scores of %s: %w", sets[0], Unexpected(lua.Page, reply))
	}
	next, _ = reply[1].(string)
	for i, some := range reply[2:] {
		texts, failed := list(some)
		if i == 0 {
			members = texts
		} else {
			scores = append(scores, texts)
		}
		if failed != nil || next == "" || len(texts) != len(members) {
			return "", nil, nil, fmt.Errorf("read the scores of %s: %w", sets[0], Unexpected(lua.Page, reply))
		}
	}
	return next, members, scores, nil
}
