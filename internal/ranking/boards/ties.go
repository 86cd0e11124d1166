package boards

import (
	"context"
	"fmt"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
)

// bounds returns the range of scores of a standing's points, or of its tuple.
func (b *Boards) bounds(board *ranking.Board, st *ranking.Standing) (low, high float64, err error) {
	layout, _ := b.Layout(board.Name, board.Window.Period)
	tuple := st.Tuple
	if board.Fields.Len() == 0 {
		tuple = codec.Tuple{st.Points}
	}
	if low, high, err = layout.Bounds(tuple); err != nil {
		return 0, 0, fmt.Errorf("ties of %q: %w", st.Member, err)
	}
	return low, high, nil
}

// tie fills in the ties of several shards' rows, if the query asks for them. It counts members twice on
// each shard, or less often if the rows are at an end of the board.
func (b *Boards) tie(ctx context.Context, q *ranking.Query, board *ranking.Board) error {
	rows := board.Standings
	if !q.Ties || len(rows) == 0 {
		return nil
	}
	first, last := &rows[0], &rows[len(rows)-1]
	more, atLeast := first.Rank-1, last.Rank
	var ends []ranking.Pivot
	var counts []*int64
	if more > 0 {
		_, high, err := b.bounds(board, first)
		if err != nil {
			return err
		}
		ends, counts = append(ends, ranking.Pivot{Score: high}), append(counts, &more)
	}
	if atLeast < board.Members {
		low, _, err := b.bounds(board, last)
		if err != nil {
			return err
		}
		ends, counts = append(ends, ranking.Pivot{Score: low}), append(counts, &atLeast)
	}
	if len(ends) > 0 {
		above := make([]ranking.AboveQuery, len(b.shards))
		for shard := range above {
			above[shard].Pivots = ends
		}
		counted, err := ranking.AboveEach(ctx, b.shards, q.Board, q.Window, above)
		if err != nil {
			return err
		}
		for i := range counts {
			*counts[i] = 0
			for shard := range counted {
				*counts[i] += counted[shard].Counts[i]
			}
		}
	}
	ranking.Tie(rows, more, atLeast)
	return nil
}
