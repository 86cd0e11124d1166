package reading

// What is read of a window: pages, members, and places that a score would have.

import (
	"context"
	"fmt"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Page is which rows of a window are read. The zero Page has none.
type Page struct {
	Limit  int
	Offset int            // rows to leave out
	Bottom bool           // from the last row upwards; the rows are in order all the same
	After  *ranking.Pivot // only rows strictly after it
	// Points, where it isn't nil, is the range of points, both ends in it.
	Points *[2]int64
	// Ties has how many members have more points, and at least as many, in every row.
	Ties bool
}

// Window reads what there is to know of a window without its rows.
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

// Around reads a member's row and n above and below it, as many in all also where it is near an end
// of the board. Of a member who isn't there it is that member alone, without a rank.
func (r *Reader) Around(ctx context.Context, t Target, member string, n int, ties bool) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties, Full: true}).Around(ctx, t.Board, w, member, n)
	}, func(c *copied) error { return c.around(member, n, true, ties) })
}

// Neighbours reads a member's row and those of up to n above and below it. Of a member who isn't
// there it is that member alone, without a rank.
func (r *Reader) Neighbours(ctx context.Context, t Target, member string, n int) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.Around(ctx, t.Board, w, member, n)
	}, func(c *copied) error { return c.around(member, n, false, false) })
}

// Beside reads a member's row, and that above it and below it.
func (r *Reader) Beside(ctx context.Context, t Target, member string, ties bool) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties}).Around(ctx, t.Board, w, member, 1)
	}, func(c *copied) error { return c.around(member, 1, false, ties) })
}

// Shadow reads a member's row as banned members see their own: with the rank that they would have.
func (r *Reader) Shadow(ctx context.Context, t Target, member string) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.RankOfHidden(ctx, t.Board, w, member)
	}, func(c *copied) error { return c.shadow(member) })
}

// MostMembers is how many members can be looked up at a time.
const MostMembers = boards.MostMembers

// Members reads the rows of some members, in the order in which they are given; Rank is 0 for a
// member who isn't there.
func (r *Reader) Members(ctx context.Context, t Target, ties bool, members ...string) (View, error) {
	return r.read(ctx, t, func(all *boards.Boards, w periods.Window) (ranking.Board, error) {
		return all.With(boards.Extra{Ties: ties}).Rank(ctx, t.Board, w, members...)
	}, func(c *copied) error { return c.members(ties, members...) })
}

// ErrRange says that nobody can have such points, or such fields.
var ErrRange = codec.ErrRange

// Would reads the place that somebody would have who reached a tuple now: Place members are above
// it, and Counts has how many have at least the tuple, and how many have more. The rows are those
// around it. Values are the points, or the fields in their order; out of the board's range they are
// ErrRange.
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

// bounds are those of the scores of points; points past the board's range are at its end.
func (r *Reader) bounds(all *boards.Boards, t Target, points int64) (low, high float64, err error) {
	l, ok := all.Layout(t.Board, t.Period.Rule.Name())
	if !ok {
		return 0, 0, fmt.Errorf("board %s has no %s windows", t.Board, t.Period.Rule.Name())
	}
	field := l.Packing.Fields.At(0)
	return l.Bounds(codec.Tuple{max(-field.Max, min(field.Max, points))})
}

// Fields are those of a board by a rule of its own; none by the default rule.
func (r *Reader) Fields(board string) codec.Fields { return r.Boards().Shards()[0].Fields(board) }
