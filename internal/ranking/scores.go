package ranking

// Reads a window's members and their scores on one shard, page by page.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// Scored is a member and its score as Redis writes it. The score is empty if the window doesn't have the
// member.
type Scored struct{ Member, Score string }

// ScanScores passes every member of a window to each, a page at a time, and waits for pause between two
// calls. It may miss members that are written meanwhile, and may pass a member twice. If another server
// takes over meanwhile, it starts again.
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

// Scores reads the scores of members in a window, in the order of members.
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

// page reads members of sorted sets and their scores in each set as of one moment; a score is empty if a
// set doesn't have the member. what is scan, a cursor and the approximate number of members of the first
// set to read; or members, followed by the members.
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
