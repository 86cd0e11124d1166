package boards

import (
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Extra lists additional results of reads, taken at the same instant as the rows; with several shards, at
// the instant of each.
type Extra struct {
	// Ties fills in More and AtLeast of every standing. With several shards this takes one more round trip,
	// and the counts are slightly newer than the ranks.
	Ties bool
	// Counts are scores: Board.Counts holds the number of members with at least each of them.
	Counts []float64
	// Full makes Around and AroundScore return as many rows at an end of the board as elsewhere, by reading
	// more on the other side.
	Full bool
}

// With returns the same boards with additional results for every read.
func (b *Boards) With(e Extra) *Boards {
	with := *b
	with.extra = e
	return &with
}

// Layout returns the layout of a board's scores in the windows of a period, if the period has one.
func (b *Boards) Layout(board string, p periods.Period) (codec.TupleLayout, bool) {
	return b.shards[0].Layout(board, string(p))
}

// query returns a query about a window, with the additional results.
func (b *Boards) query(board string, w periods.Window, rows ranking.Rows) ranking.Query {
	return ranking.Query{Board: board, Window: w, Rows: rows, Ties: b.extra.Ties, Counts: b.extra.Counts}
}
