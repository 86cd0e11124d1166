package reading

// The list of boards and windows. It may have 200,000 windows, so it is read page by page, and one read serves all
// requests for a few seconds.

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/boards"
)

// catalogFor is how long a list is reused after it was read.
const catalogFor = 5 * time.Second

// catalog is the list as it was last read.
type catalog struct {
	mu   sync.Mutex // held during a read, so that concurrent requests wait for it
	read time.Time
	all  []boards.Listed // sorted by board, then period, then start
}

// Listed returns the listed windows of a board, or of all boards if board is empty, sorted by board, then in the
// order of the periods, then by start. The caller must not modify the result.
func (r *Reader) Listed(ctx context.Context, board string) ([]boards.Listed, error) {
	c := &r.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || time.Since(c.read) > catalogFor {
		all, err := r.Boards().ListedWindows(ctx, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b boards.Listed) int {
			return cmp.Or(strings.Compare(a.Board, b.Board), r.order(a.Period)-r.order(b.Period), strings.Compare(a.Period, b.Period), cmp.Compare(a.Start, b.Start))
		})
		c.all, c.read = all, time.Now()
	}
	if board == "" {
		return c.all, nil
	}
	from, _ := slices.BinarySearchFunc(c.all, board, func(w boards.Listed, board string) int { return strings.Compare(w.Board, board) })
	to := from
	for to < len(c.all) && c.all[to].Board == board {
		to++
	}
	return c.all[from:to], nil
}

func (r *Reader) order(period string) int {
	if i := slices.IndexFunc(r.Periods, func(p Period) bool { return p.Rule.Name() == periods.Period(period) }); i >= 0 {
		return i
	}
	return len(r.Periods)
}
