package ranking

// Which boards have a window, for the last tenth of the windows that may be listed.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
)

// openedFor is how long it is used which boards had a window. A new board that names itself in every event
// costs Redis no more than a look at its listing in this time, a page at a time.
const openedFor = 10 * time.Second

// openedBoards are the boards that had a window when the listing was last read.
type openedBoards struct {
	mu     sync.Mutex // guards what follows, and is held while the listing is read
	read   time.Time
	boards map[uint64]struct{} // hashes of their names
}

// haveWindows has a digit for each window: 1 if its board has a window that is listed, or had one some
// seconds ago, else 0. A board that has got its first one since is taken for new: that is possible only if
// windows were removed and others have taken their room within these seconds.
func (s *Store) haveWindows(ctx context.Context, windows []ledger.Window) (string, error) {
	o := &s.opened
	o.mu.Lock()
	defer o.mu.Unlock()
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
