package boards

// Pages that continue after a given row rather than at an offset, so that changes of the board neither
// repeat nor skip rows; and the place of a given score. Each almost always takes one round trip.

import (
	"context"
	"math"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// After reads the first limit standings strictly after a pivot. The pivot's member need not exist.
func (b *Boards) After(ctx context.Context, board string, w periods.Window, pivot ranking.Pivot, limit int) (ranking.Board, error) {
	return b.beside(ctx, board, w, ranking.Rows{From: ranking.FromNext, Pivot: pivot, Below: limit})
}

// AroundScore reads up to n standings above and up to n below the place just after all members with at
// least score. With the lowest score of some points (TupleLayout.Bounds), this is the place of a member who
// reaches those points now; its rank would be Board.Place + 1.
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

// checkRows returns an error if a number of rows is negative or too large.
func checkRows(board string, numbers ...int) error {
	for _, n := range numbers {
		if n < 0 || n > math.MaxInt/8 {
			return ranking.Faultf("read %s: %d standings around a place: must be 0 or more", board, n)
		}
	}
	return nil
}
