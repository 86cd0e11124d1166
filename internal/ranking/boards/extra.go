package boards

import (
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Extra is what reads return besides, as of the same moment: of several shards as of that of each.
type Extra struct {
	// Ties has More and AtLeast of every standing. Over several shards that is a round trip more,
	// and the counts are a moment younger than the ranks.
	Ties bool
	// Counts are scores: Board.Counts is how many members have at least each.
	Counts []float64
	// Full has Around and AroundScore read as many rows at an end of the board as elsewhere: those
	// beyond it on the other side.
	Full bool
}

// With are the same boards, of which every read returns something besides.
func (b *Boards) With(e Extra) *Boards {
	with := *b
	with.extra = e
	return &with
}

// Layout is how the scores of a board are laid out in the windows of a period, if it has any.
func (b *Boards) Layout(board string, p periods.Period) (codec.TupleLayout, bool) {
	return b.shards[0].Layout(board, string(p))
}

// query is one about a window, and what is read besides.
func (b *Boards) query(board string, w periods.Window, rows ranking.Rows) ranking.Query {
	return ranking.Query{Board: board, Window: w, Rows: rows, Ties: b.extra.Ties, Counts: b.extra.Counts}
}
