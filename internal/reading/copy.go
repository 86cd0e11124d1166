package reading

// A copy of a window, read as Redis reads the window: the same rows, ranks, places and counts. Rows
// are stored by rank, so most of it is arithmetic. What a copy counted may be another than what its
// board counts today, and so is the layout of its scores: rows are compared by their values, and
// scores by scores of the same copy alone.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// copied is a copy as it is read.
type copied struct {
	ctx    context.Context //nolint:containedctx // that of one read
	store  *store.Store
	window store.Window
	board  ranking.Board
	today  codec.Fields // what its board counts now
	layout codec.TupleLayout
	before *ranking.Standing // the row above those that were read after a pivot
}

// mostCopies is how often a copy is read anew that was replaced in between.
const mostCopies = 3

// fromArchive reads a window from the newest whole copy of it: store.ErrNotFound where there is none.
// was is what Redis has said of it, which doesn't list it.
func (r *Reader) fromArchive(ctx context.Context, t Target, was *ranking.Board, layout codec.TupleLayout, do func(*copied) error) (View, error) {
	name := t.Board + ":" + string(t.Window.Period) + ":" + t.Window.Name
	if r.archive.isMissing(name) {
		return View{}, store.ErrNotFound
	}
	limit, missing := r.archive.Timeout, missingFor
	if isLive(was, t.Window) {
		limit, missing = min(limit, liveLimit), liveMissingFor
	}
	var v View
	err := r.archive.use(ctx, limit, func(ctx context.Context, s *store.Store) (err error) {
		for tries := 1; ; tries++ {
			c := copied{ctx: ctx, store: s, today: r.Fields(t.Board), layout: layout}
			if c.window, err = s.Window(ctx, t.Board, string(t.Window.Period), t.Window.Name); err != nil {
				return err
			}
			if err = c.begin(t, was); err == nil {
				err = do(&c)
			}
			if errors.Is(err, store.ErrGone) && tries < mostCopies {
				continue
			}
			if err == nil {
				v = c.view(t)
			}
			return err
		}
	})
	if errors.Is(err, store.ErrNotFound) || isLive(was, t.Window) && archiveFailed(err) {
		r.archive.miss(name, missing)
	}
	return v, err
}

// begin is what a read of the window says of it without its rows.
func (c *copied) begin(t Target, was *ranking.Board) error {
	w := &c.window
	c.board = ranking.Board{
		Name: t.Board, Window: periods.Window{Period: t.Window.Period, Name: w.Name, Start: w.Start.UnixMilli(), End: w.End.UnixMilli()},
		Tick: w.Tick, Members: w.Members, Listed: true, Revision: w.Revision, Incomplete: w.Incomplete,
		Beside: ledger.State{Now: was.Beside.Now, Asked: was.Beside.Asked, Ledger: w.Ledger, Schema: was.Beside.Schema},
	}
	if c.board.Beside.Now.IsZero() { // Redis holds nothing
		c.board.Beside.Now = time.Now()
	}
	if w.Fields != nil {
		var err error
		if c.board.Fields, err = codec.NewFields(w.Fields...); err != nil {
			return fmt.Errorf("the fields of %s: %w", w, err)
		}
	}
	return nil
}

func (c *copied) view(t Target) View {
	t.Window, t.Period.Zone = c.board.Window, c.window.Zone
	return View{Board: c.board, Target: t, layout: c.layout, before: c.before, Archived: true, AsOf: c.window.AsOf}
}

// standing is a row.
func (c *copied) standing(r *store.Row) ranking.Standing {
	st := ranking.Standing{Rank: r.Rank, Member: r.Member, Score: r.Score, ReachedAt: time.UnixMilli(r.ReachedAt).UTC()}
	if c.board.Fields.Len() > 0 {
		st.Tuple = r.Tuple
	} else {
		st.Points = r.Tuple[0]
	}
	return st
}

func tupleOf(b *ranking.Board, st *ranking.Standing) codec.Tuple {
	if b.Fields.Len() == 0 {
		return codec.Tuple{st.Points}
	}
	return st.Tuple
}

// read reads the rows of [from, to), counted from 0, as far as they are there.
func (c *copied) read(from, to int64) ([]ranking.Standing, error) {
	from, to = max(0, from), min(to, c.board.Members)
	if from >= to {
		return nil, nil
	}
	rows, err := c.store.Rows(c.ctx, c.window.ID, from+1, int(to-from))
	if err != nil {
		return nil, err
	}
	all := make([]ranking.Standing, 0, to-from)
	for i := range rows {
		if rows[i].Rank != from+1+int64(i) {
			return nil, fmt.Errorf("%w: the rank %d of %s is missing", store.ErrDiffers, from+1+int64(i), &c.window)
		}
		all = append(all, c.standing(&rows[i]))
	}
	if int64(len(all)) != to-from {
		return nil, fmt.Errorf("%w: of the ranks %d to %d of %s there are %d", store.ErrDiffers, from+1, to, &c.window, len(all))
	}
	return all, nil
}

// rows reads [from, to) as what is shown, with its ties where they are asked for.
func (c *copied) rows(from, to int64, ties bool) (err error) {
	if c.board.Standings, err = c.read(from, to); err != nil || !ties || len(c.board.Standings) == 0 {
		return err
	}
	all := c.board.Standings
	places, err := c.places(tupleOf(&c.board, &all[0]), tupleOf(&c.board, &all[len(all)-1]))
	if err == nil {
		ranking.Tie(all, places[0].Better, places[1].AtLeast)
	}
	return err
}

func (c *copied) places(tuples ...codec.Tuple) ([]store.Places, error) {
	return c.store.Places(c.ctx, &c.window, tuples)
}

// page reads a page.
func (c *copied) page(p Page) error {
	offset, limit := int64(p.Offset), int64(p.Limit)
	switch {
	case p.Points != nil:
		return c.inRange(p)
	case p.Limit == 0 && p.After == nil:
		return nil
	case p.Bottom:
		c.board.Place = max(0, c.board.Members-offset)
		return c.rows(c.board.Place-limit, c.board.Place, p.Ties)
	case p.After != nil:
		if err := c.after(p.After); err != nil {
			return err
		}
		return c.rows(c.board.Place, c.board.Place+limit, p.Ties)
	}
	c.board.Place = offset
	return c.rows(offset, offset+limit, p.Ties)
}

// after finds how many rows aren't strictly after a pivot, whose member needn't be there.
func (c *copied) after(p *ranking.Pivot) error {
	if math.IsNaN(p.Score) {
		return &askedError{fmt.Errorf("read %s: a score that is no number", c.board.Name)}
	}
	places, err := c.store.PlaceOfScore(c.ctx, c.window.ID, p.Score)
	if err != nil {
		return err
	}
	above, equal := places.Better, places.AtLeast
	for above < equal { // of equal scores the greater id is first
		middle := (above + equal) / 2
		row, err := c.read(middle, middle+1)
		if err != nil {
			return err
		}
		if p.Member == "" || row[0].Member >= p.Member {
			above = middle + 1
		} else {
			equal = middle
		}
	}
	c.board.Place = above
	row, err := c.read(above-1, above)
	if len(row) > 0 && row[0].Score == p.Score {
		c.before = &row[0]
	}
	return err
}

// inRange reads a page of those whose points are in a range.
func (c *copied) inRange(p Page) error {
	if err := c.sameRule(); err != nil {
		return err
	}
	low, high := c.capped(p.Points[0]), c.capped(p.Points[1])
	if low > high {
		return &askedError{fmt.Errorf("read %s: points from %d to %d: the first have to be the fewer", c.board.Name, low, high)}
	}
	ends, err := c.places(codec.Tuple{low}, codec.Tuple{high})
	if err != nil {
		return err
	}
	from := ends[1].Better
	c.board.InRange = ends[0].AtLeast - from
	if p.After != nil {
		if err := c.after(p.After); err != nil {
			return err
		}
		from = max(from, c.board.Place)
	}
	c.board.Place = from + int64(p.Offset)
	return c.rows(c.board.Place, min(c.board.Place+int64(p.Limit), ends[0].AtLeast), p.Ties)
}

// capped are points within what a member could have in the window: those past it are at its end, as of a
// window that is in Redis. A copy that doesn't say how many that were has any.
func (c *copied) capped(points int64) int64 {
	most := c.window.MaxPoints
	if c.window.Fields != nil {
		most = c.window.Fields[0].Max
	}
	if most == 0 {
		return points
	}
	return max(-most, min(most, points))
}

// around reads a member's row and n above and below it, or with full as many also at an end.
func (c *copied) around(member string, n int, full, ties bool) error {
	if err := c.members(ties, member); err != nil || c.board.Standings[0].Rank == 0 {
		return err
	}
	c.board.Place = c.board.Standings[0].Rank - 1
	return c.beside(int64(n), int64(n)+1, full, ties)
}

// beside reads so many rows above the place, and below it.
func (c *copied) beside(above, below int64, full, ties bool) error {
	from, to := c.board.Place-above, c.board.Place+below
	if full && from < 0 {
		to -= from
	} else if full && to > c.board.Members {
		from -= to - c.board.Members
	}
	return c.rows(from, to, ties)
}

// members reads the rows of some members, in the order in which they are given.
func (c *copied) members(ties bool, members ...string) error {
	if len(members) > MostMembers {
		return &askedError{fmt.Errorf("read %s: %d members at once: at most %d are", c.board.Name, len(members), MostMembers)}
	}
	// No database takes others, and no event has them.
	valid := slices.DeleteFunc(slices.Clone(members), func(id string) bool { return id == "" || !utf8.ValidString(id) })
	rows, err := c.store.Members(c.ctx, c.window.ID, valid)
	if err != nil {
		return err
	}
	found := make(map[string]*store.Row, len(rows))
	for i := range rows {
		found[rows[i].Member] = &rows[i]
	}
	c.board.Standings = make([]ranking.Standing, len(members))
	var tuples []codec.Tuple
	var tied []*ranking.Standing
	for i, member := range members {
		st := &c.board.Standings[i]
		st.Member = member
		if row := found[member]; row != nil {
			*st = c.standing(row)
			tuples, tied = append(tuples, row.Tuple), append(tied, st)
		}
	}
	if !ties || len(tied) == 0 {
		return nil
	}
	places, err := c.places(tuples...)
	if err != nil {
		return err
	}
	for i, st := range tied {
		st.More, st.AtLeast = places[i].Better, places[i].AtLeast
	}
	return nil
}

// would reads the place of a tuple that is reached after all others.
func (c *copied) would(tuple codec.Tuple, n int) error {
	if err := c.sameRule(); err != nil {
		return err
	}
	if c.board.Fields.Len() > 0 && !c.board.Fields.Holds(tuple) {
		return &askedError{fmt.Errorf("%w: %v", ErrRange, c.board.Fields)}
	}
	if c.board.Fields.Len() == 0 {
		if _, _, err := c.layout.Bounds(tuple); err != nil { // of today: Redis was read first
			return &askedError{err}
		}
	}
	places, err := c.places(tuple)
	if err != nil {
		return err
	}
	c.board.Counts = []int64{places[0].AtLeast, places[0].Better}
	c.board.Place = places[0].AtLeast
	return c.beside(int64(n), int64(n), true, false)
}

// OtherRuleError says that a window was counted by other fields than its board has today.
type OtherRuleError struct {
	Board, Window string
	Then, Now     string
}

func (e *OtherRuleError) Error() string {
	return fmt.Sprintf("the board %s counted %s in the window %s, and counts %s today", e.Board, e.Then, e.Window, e.Now)
}

// sameRule refuses values of what the board counts today where the copy has others.
func (c *copied) sameRule() error {
	same := slices.EqualFunc(c.board.Fields.List(), c.today.List(), func(a, b codec.Field) bool { return a.Name == b.Name && a.Fewest == b.Fewest })
	if same {
		return nil
	}
	text := func(f codec.Fields) string {
		if f.Len() == 0 {
			return "points"
		}
		return f.String()
	}
	return &askedError{&OtherRuleError{c.board.Name, c.window.Name, text(c.board.Fields), text(c.today)}}
}
