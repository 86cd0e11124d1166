package ranking

// The boards that have a listed window. Only they may open windows in the last tenth of MaxWindows.

import (
	"context"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
)

// openedFor is how long the boards are cached. However many new boards events name, a store reads the
// listing at most once in this time.
const openedFor = 10 * time.Second

// openedBoards are the boards that had a window when the listing was last read.
type openedBoards struct {
	turn   chan struct{} // holds a token while a call uses the fields below, also while it reads the listing
	read   time.Time
	boards map[uint64]struct{} // hashes of their names
}

// haveWindows returns a digit for each window: 1 if its board had a listed window when the listing was last
// read, else 0. A board that opened its first window since then counts as new. This is possible only if
// windows were removed within these seconds and others took their places.
func (s *Store) haveWindows(ctx context.Context, windows []ledger.Window) (string, error) {
	o := &s.opened
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("see which boards have a window: %w", context.Cause(ctx))
	}
	if o.boards == nil || time.Since(o.read) >= openedFor {
		boards, began := map[uint64]struct{}{}, time.Now()
		if err := s.onOneServer(ctx, func() error { return s.AddBoards(ctx, time.Millisecond, boards) }); err != nil {
			return "", fmt.Errorf("see which boards have a window: %w", err)
		}
		o.boards, o.read = boards, began
	}
	have := make([]byte, len(windows))
	for i := range windows {
		have[i] = '0'
		if _, ok := o.boards[xxhash.Sum64String(windows[i].Board)]; ok {
			have[i] = '1'
		}
	}
	return string(have), nil
}
