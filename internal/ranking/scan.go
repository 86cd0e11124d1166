package ranking

import (
	"context"
	"errors"
	"fmt"

	"github.com/standings/standings/internal/periods"
)

// ErrServerChanged reports that a Redis server failed over or restarted during a read.
var ErrServerChanged = errors.New("a server of Redis failed over or restarted")

// OnOneServer runs do, and again if the shard's server failed over or restarted meanwhile.
func (s *Store) OnOneServer(ctx context.Context, do func() error) error {
	return s.onOneServer(ctx, do)
}

// ScanMembers returns a page of the members that a window of the shard shows, or of its hidden members, in
// no order, and the cursor of the next page. The first cursor is 0, and 0 is returned after the last page.
// A member that is in the window from the first page to the last is on at least one page. Cursors are valid
// on one server process only (OnOneServer).
func (s *Store) ScanMembers(ctx context.Context, board string, w periods.Window, hidden bool, cursor uint64) (page []Standing, next uint64, err error) {
	lw := listed(board, w)
	layout, _ := s.Layout(board, lw.Period)
	key := s.keys.Window(&lw)
	if hidden {
		key = s.keys.Hidden(lw.Listing())
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	words, next, err := s.client.ZScan(limited, key, cursor, "", scanned).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("scan %s: %w", lw.Listing(), s.explain(err, ""))
	}
	ruled := s.Fields(board).Len() > 0
	page = make([]Standing, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "" { // the empty id is no member: it keeps a window without members in existence (lua/ban.lua)
			continue
		}
		st, err := standing(layout, ruled, w, words[i], words[i+1])
		if err != nil {
			return nil, 0, fmt.Errorf("scan %s: %w", lw.Listing(), s.ofShard(err))
		}
		page = append(page, st)
	}
	return page, next, nil
}
