package boards

import (
	"context"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Range is the standings whose scores are in [Low, High). Either may be infinite.
type Range struct {
	Low, High float64
	Offset    int            // how many to leave out first
	After     *ranking.Pivot // leaves out those up to it, if there is one
}

// Range reads the first limit standings of a range, with the ranks that they have on the board, and
// Board.InRange, how many are in it. Offset and limit are 0 or more. The first row is found by
// counting who has more, never by going through the range; of several shards an offset that is
// large is found by a search, as by Top.
func (b *Boards) Range(ctx context.Context, board string, w periods.Window, in Range, limit int) (ranking.Board, error) {
	if err := ranking.CheckPage(board, in.Offset, limit); err != nil {
		return ranking.Board{}, err
	}
	rows := ranking.Rows{From: ranking.FromPivot, Skip: in.Offset, Pivot: ranking.Pivot{Score: in.High}, Below: limit, Least: &in.Low}
	if in.After != nil && comparePivots(*in.After, rows.Pivot) > 0 {
		rows.From, rows.Pivot = ranking.FromNext, *in.After
	}
	if in.Low > in.High {
		return ranking.Board{}, ranking.Faultf("read %s: scores from %v to below %v: the first has to be the lower", board, in.Low, in.High)
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

// inRange has the counts of the range's ends, which come after others, say how many are in it.
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

// farInRange reads a page that is far down in a range of several shards: the rank of its first row
// by counting, and the page by a search for that. What has changed since may have left rows that
// aren't in the range: they aren't shown.
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
