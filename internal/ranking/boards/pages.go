package boards

// Pages that begin where another ended, whatever has changed since: at a place in the order, not at
// an offset. And the place that a score would have. Each is one round trip, almost always.

import (
	"context"
	"math"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// After reads the first limit standings strictly after a pivot, whose member needn't be there.
func (b *Boards) After(ctx context.Context, board string, w periods.Window, pivot ranking.Pivot, limit int) (ranking.Board, error) {
	return b.beside(ctx, board, w, ranking.Rows{From: ranking.FromNext, Pivot: pivot, Below: limit})
}

// AroundScore reads up to n standings above the place below whoever has at least a score, and up to
// n below it. With the least score of some points (TupleLayout.Bounds) it is the place of the latest
// who reached them; its rank would be Board.Place + 1.
func (b *Boards) AroundScore(ctx context.Context, board string, w periods.Window, score float64, n int) (ranking.Board, error) {
	return b.beside(ctx, board, w, ranking.Rows{
		From: ranking.FromPivot, Pivot: ranking.Pivot{Score: score}, Above: n, Below: n, Full: b.extra.Full,
	})
}

func (b *Boards) beside(ctx context.Context, board string, w periods.Window, rows ranking.Rows) (ranking.Board, error) {
	if err := checkRows(board, max(rows.Above, rows.Below), min(rows.Above, rows.Below)); err != nil {
		return ranking.Board{}, err
	}
	q := b.query(board, w, rows)
	return b.around(ctx, &q)
}

// checkRows refuses numbers of rows that there can't be.
func checkRows(board string, numbers ...int) error {
	for _, n := range numbers {
		if n < 0 || n > math.MaxInt/8 {
			return ranking.Faultf("read %s: %d standings beside a place: it has to be 0 or more", board, n)
		}
	}
	return nil
}
