package reading

// Reads of a window: pages, members, and the place that given values would have.

import (
	"context"
	"fmt"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Page selects rows of a window. The zero Page selects none.
type Page struct {
	Limit  int
	Offset int            // rows to skip
	Bottom bool           // select from the last row upwards; the result is still in rank order
	After  *ranking.Pivot // only rows strictly after it
	// Points, if not nil, is the range of points, inclusive at both ends.
	Points *[2]int64
	// Ties adds to every row the number of members with more points and with at least as many.
	Ties bool
}

// Window reads a window without its rows.
func (r *Reader) Window(ctx context.Context, t Target) (View, error) {
	return r.Rows(ctx, t, Page{})
}

// Rows reads a page.
func (r *Reader) Rows(ctx context.Context, t Target, p Page) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		all = all.With(boards.Extra{Ties: p.Ties})
		switch {
		case p.Points != nil:
			in := boards.Range{Offset: p.Offset, After: p.After}
			var err error
			if in.Low, _, err = r.bounds(all, t, p.Points[0]); err != nil {
				return ranking.Board{}, err
			}
			if _, in.High, err = r.bounds(all, t, p.Points[1]); err != nil {
				return ranking.Board{}, err
			}
			return all.Range(ctx, t.Board, w, in, p.Limit)
		case p.Bottom:
			return all.Bottom(ctx, t.Board, w, p.Offset, p.Limit)
		case p.After != nil:
			return all.After(ctx, t.Board, w, *p.After, p.Limit)
		}
		return all.Top(ctx, t.Board, w, p.Offset, p.Limit)
	}, func(c *copied) error { return c.page(p) })
}

// Around reads a member's row and n rows above and below it. Near an end of the board it extends the range, so
// that the number of rows stays the same. If the member has no standing, the only row is the member's, without a
// rank.
func (r *Reader) Around(ctx context.Context, t Target, member string, n int, ties bool) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties, Full: true}).Around(ctx, t.Board, w, member, n)
	}, func(c *copied) error { return c.around(member, n, true, ties) })
}

// Neighbours reads a member's row and up to n rows above and below it. If the member has no standing, the only row
// is the member's, without a rank.
func (r *Reader) Neighbours(ctx context.Context, t Target, member string, n int) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.Around(ctx, t.Board, w, member, n)
	}, func(c *copied) error { return c.around(member, n, false, false) })
}

// Beside reads a member's row, and the rows directly above and below it.
func (r *Reader) Beside(ctx context.Context, t Target, member string, ties bool) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties}).Around(ctx, t.Board, w, member, 1)
	}, func(c *copied) error { return c.around(member, 1, false, ties) })
}

// Shadow reads a member's row as a banned member sees its own: with the rank that it would have.
func (r *Reader) Shadow(ctx context.Context, t Target, member string) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.RankOfHidden(ctx, t.Board, w, member)
	}, func(c *copied) error { return c.shadow(member) })
}

// MostMembers is the maximum number of members in one lookup.
const MostMembers = boards.MostMembers

// Members reads the rows of members, in the given order. Rank is 0 for a member without a standing.
func (r *Reader) Members(ctx context.Context, t Target, ties bool, members ...string) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties}).Rank(ctx, t.Board, w, members...)
	}, func(c *copied) error { return c.members(ties, members...) })
}

// ErrRange reports points or fields that no member can have.
var ErrRange = codec.ErrRange

// Would reads the place of a member that would reach a tuple now. Place is the number of members above it. Counts
// has the numbers of members with at least the tuple and with more. The rows are those around the place. Values
// are the points, or the fields in their order; ErrRange reports values out of the board's range.
func (r *Reader) Would(ctx context.Context, t Target, values []int64, n int) (View, error) {
	tuple := codec.Tuple{}
	copy(tuple[:], values)
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		l, ok := all.Layout(t.Board, t.Period.Rule.Name())
		if !ok {
			return ranking.Board{}, fmt.Errorf("board %s has no %s windows", t.Board, t.Period.Rule.Name())
		}
		low, high, err := l.Bounds(tuple)
		if err != nil {
			return ranking.Board{}, err
		}
		return all.With(boards.Extra{Counts: []float64{low, high}, Full: true}).AroundScore(ctx, t.Board, w, low, n)
	}, func(c *copied) error { return c.would(tuple, n) })
}

// bounds returns the lowest and the highest score with the given points, which are limited to the board's range.
func (r *Reader) bounds(all *boards.Boards, t Target, points int64) (low, high float64, err error) {
	l, ok := all.Layout(t.Board, t.Period.Rule.Name())
	if !ok {
		return 0, 0, fmt.Errorf("board %s has no %s windows", t.Board, t.Period.Rule.Name())
	}
	field := l.Packing.Fields.At(0)
	return l.Bounds(codec.Tuple{max(-field.Max, min(field.Max, points))})
}

// Fields returns the fields of a board with its own rule; none for the default rule.
func (r *Reader) Fields(board string) codec.Fields { return r.Boards().Shards()[0].Fields(board) }
