package boards

import (
	"context"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// farDown is the offset beyond which a page isn't found by reading all that is above it.
const farDown = 2000

// Top reads the first limit standings from an offset on. Both are 0 or more. A page near the top
// is one round trip, almost always; one that is far down a few, by a search (see search.go).
func (b *Boards) Top(ctx context.Context, board string, w periods.Window, offset, limit int) (ranking.Board, error) {
	if b.onlyOne() {
		return b.shards[0].Top(ctx, board, w, offset, limit)
	}
	if err := ranking.CheckPage(board, offset, limit); err != nil {
		return ranking.Board{}, err
	}
	if limit > 0 && offset > farDown {
		return b.farDown(ctx, board, w, offset, limit)
	}
	need := offset + limit
	if limit == 0 {
		need = 0
	}
	for ask := b.share(need); ; ask = min(need, 4*ask) {
		parts, all, err := b.read(ctx, b.each(ranking.Query{Board: board, Window: w, Rows: ranking.Rows{From: ranking.FromTop, Below: ask}}))
		if err != nil {
			return all, err
		}
		some, asked := make([]*ranking.Part, len(parts)), make([]int, len(parts))
		for i := range parts {
			some[i], asked[i] = &parts[i], ask
		}
		rows := merge(some)
		if ask == need || reaches(some, rows, need, asked) {
			all.Standings = page(rows, 1, offset, limit)
			return all, nil
		}
	}
}
