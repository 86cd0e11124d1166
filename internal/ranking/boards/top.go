package boards

import (
	"context"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// farDown is the largest offset at which a page is found by reading all rows between it and an end of the
// board.
const farDown = 2000

// Top reads the first limit standings from offset on. Both are 0 or more. A page near the top almost always
// takes one round trip; a page far down takes a few, by a search (see search.go).
func (b *Boards) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (ranking.Board, error) {
	if err := ranking.CheckPage(board, offset, limit); err != nil {
		return ranking.Board{}, err
	}
	q := b.query(board, w, ranking.Rows{From: ranking.FromTop, Skip: offset, Below: limit})
	if limit > 0 && offset > farDown && !b.onlyOne() {
		return b.farDown(ctx, &q, offset, limit)
	}
	return b.around(ctx, &q)
}

// Bottom skips the last offset standings and reads the limit standings before them, ordered by rank. Both
// are 0 or more. It costs as much as Top.
func (b *Boards) Bottom(ctx context.Context, board string, w periods.Window, offset, limit int) (ranking.Board, error) {
	if err := ranking.CheckPage(board, offset, limit); err != nil {
		return ranking.Board{}, err
	}
	q := b.query(board, w, ranking.Rows{From: ranking.FromBottom, Skip: offset, Above: limit})
	if limit == 0 || offset <= farDown || b.onlyOne() {
		return b.around(ctx, &q)
	}
	q.Rows = ranking.Rows{}
	_, all, err := b.read(ctx, b.each(q))
	if err != nil || all.Members <= int64(offset) {
		return all, err
	}
	to := int(all.Members) - offset
	from := max(0, to-limit)
	return b.farDown(ctx, &q, from, to-from)
}
