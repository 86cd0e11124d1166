package boards

import (
	"context"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Range is the range of standings with scores in [Low, High). Either may be infinite.
type Range struct {
	Low, High float64
	Offset    int            // number of standings to skip
	After     *ranking.Pivot // if not nil, skips standings up to and including this one
}

// Range reads the first limit standings of a range with their ranks on the whole board, and sets
// Board.InRange to the number of standings in the range. Offset and limit are 0 or more. The first row is
// found by counting members with more, not by walking through the range. With several shards a large offset
// is found by a search, as in Top.
func (b *Boards) Range(ctx context.Context, board string, w periods.Window, in Range, limit int) (ranking.Board, error) {
	if err := ranking.CheckPage(board, in.Offset, limit); err != nil {
		return ranking.Board{}, err
	}
	rows := ranking.Rows{From: ranking.FromPivot, Skip: in.Offset, Pivot: ranking.Pivot{Score: in.High}, Below: limit, Least: &in.Low}
	if in.After != nil && comparePivots(*in.After, rows.Pivot) > 0 {
		rows.From, rows.Pivot = ranking.FromNext, *in.After
	}
	if in.Low > in.High {
		return ranking.Board{}, ranking.Faultf("read %s: scores from %v to below %v: the first must be the lower", board, in.Low, in.High)
	}
	q := b.query(board, w, rows)
	own := len(q.Counts)
	q.Counts = append(append([]float64(nil), q.Counts...), in.Low, in.High)
	if limit > 0 && in.Offset > farDown && !b.onlyOne() {
		return b.farInRange(ctx, &q, limit)
	}
	all, err := b.around(ctx, &q)
	return inRange(all, own), err
}

// inRange computes InRange from the counts of the range's ends, which follow the caller's own counts.
func inRange(all ranking.Board, own int) ranking.Board {
	if len(all.Counts) == own+2 {
		all.InRange = all.Counts[own] - all.Counts[own+1]
		all.Counts = all.Counts[:own:own]
	}
	if own == 0 {
		all.Counts = nil
	}
	return all
}

// farInRange reads a page far down in a range of several shards. It counts the rank of the first row, and
// finds the page by a search for that rank. Changes meanwhile may bring rows outside the range into the
// page; it omits them.
func (b *Boards) farInRange(ctx context.Context, q *ranking.Query, limit int) (ranking.Board, error) {
	own := len(q.Counts) - 2
	low, high := q.Counts[own], q.Counts[own+1]
	first := *q
	first.Rows.Below, first.Rows.Least, first.Ties = 0, nil, false
	all, err := b.around(ctx, &first)
	if err != nil || all.Place >= all.Counts[own] {
		return inRange(all, own), err
	}
	untied := *q
	untied.Ties = false
	all, err = b.farDown(ctx, &untied, int(all.Place), limit)
	if err != nil {
		return all, err
	}
	rows := all.Standings
	for len(rows) > 0 && rows[0].Score >= high {
		rows = rows[1:]
	}
	for len(rows) > 0 && rows[len(rows)-1].Score < low {
		rows = rows[:len(rows)-1]
	}
	all.Standings = rows
	return inRange(all, own), b.tie(ctx, q, &all)
}
