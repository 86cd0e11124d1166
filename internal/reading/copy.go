package reading

// Reads of an archived copy of a window. They return the same rows, ranks, places and counts as reads of the
// window in Redis. The store keeps rows by place, so most of this is arithmetic; unshown.go converts between
// places among all rows and among the rows that are shown. The copy may have other fields and another layout than
// its board has today. So rows are compared by their values, and scores only with scores of the same copy.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// copied is a copy during a read.
type copied struct {
	ctx     context.Context //nolint:containedctx // that of one read
	store   *store.Store
	window  store.Window
	hidden  *ranking.Hidden
	unshown unshown
	board   ranking.Board
	today   codec.Fields // the board's current fields
	layout  codec.TupleLayout
	before  *ranking.Standing // a row with the score of the pivot of the page, if there is one
}

// mostCopies is how often a read is tried if the copy is replaced meanwhile.
const mostCopies = 3

// fromArchive reads a window from its newest complete copy. The error is store.ErrNotFound if the archive has
// none. was is the answer of Redis, which does not list the window.
func (r *Reader) fromArchive(ctx context.Context, all *boards.Boards, t Target, was *ranking.Board, layout codec.TupleLayout, do func(*copied) error) (View, error) {
	name := t.Board + ":" + string(t.Window.Period) + ":" + t.Window.Name
	if r.archive.isMissing(name) {
		return View{}, store.ErrNotFound
	}
	limit, missing := r.archive.Timeout, missingFor
	if isLive(was, t.Window) {
		limit, missing = min(limit, liveLimit), liveMissingFor
	}
	hidden, err := r.hiddenNow(ctx, all, was)
	if err != nil {
		return View{}, err
	}
	var v View
	err = r.archive.use(ctx, limit, func(ctx context.Context, s *store.Store) (err error) {
		for tries := 1; ; tries++ {
			c := copied{ctx: ctx, store: s, hidden: hidden, today: r.Fields(t.Board), layout: layout}
			if c.window, err = s.Window(ctx, t.Board, string(t.Window.Period), t.Window.Name); err != nil {
				return err
			}
			if c.unshown, err = r.archive.unshown(ctx, s, &c.window, hidden); err == nil {
				err = c.begin(t, was)
			}
			if err == nil {
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

// begin sets everything about the window except its rows.
func (c *copied) begin(t Target, was *ranking.Board) error {
	w := &c.window
	c.board = ranking.Board{
		Name: t.Board, Window: periods.Window{Period: t.Window.Period, Name: w.Name, Start: w.Start.UnixMilli(), End: w.End.UnixMilli()},
		Tick: w.Tick, Members: w.Places() - int64(len(c.unshown)), Listed: true, Revision: w.Revision, Incomplete: w.Incomplete,
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

// standing converts a row.
func (c *copied) standing(r *store.Row) ranking.Standing {
	st := ranking.Standing{Rank: c.unshown.rankOf(r.Place), Member: r.Member, Score: r.Score, ReachedAt: time.UnixMilli(r.ReachedAt).UTC()}
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

// read reads the rows with ranks from+1 to `to`, as far as they exist.
func (c *copied) read(from, to int64) ([]ranking.Standing, error) {
	from, to = max(0, from), min(to, c.board.Members)
	if from >= to {
		return nil, nil
	}
	first, last := c.unshown.placeOf(from+1), c.unshown.placeOf(to)
	rows, err := c.store.Rows(c.ctx, c.window.ID, first, last)
	if err != nil {
		return nil, err
	}
	all := make([]ranking.Standing, 0, to-from)
	for i := range rows {
		switch r := &rows[i]; {
		case r.Place != first+int64(i):
			return nil, fmt.Errorf("%w: the place %d of %s is missing", store.ErrDiffers, first+int64(i), &c.window)
		case c.unshown.has(r.Place):
		case r.Erased(): // erased since unshown was read
			return nil, store.ErrGone
		default:
			all = append(all, c.standing(r))
		}
	}
	if int64(len(all)) != to-from {
		return nil, fmt.Errorf("%w: of the ranks %d to %d of %s there are %d", store.ErrDiffers, from+1, to, &c.window, len(all))
	}
	return all, nil
}

// rows reads the rows with ranks from+1 to `to` as the result, with ties if requested.
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

// around reads a member's row and n rows above and below it. With full, it extends the range near an end of the
// board, so that the number of rows stays the same.
func (c *copied) around(member string, n int, full, ties bool) error {
	if err := c.members(ties, member); err != nil || c.board.Standings[0].Rank == 0 {
		return err
	}
	c.board.Place = c.board.Standings[0].Rank - 1
	return c.beside(int64(n), int64(n)+1, full, ties)
}

// beside reads the given numbers of rows above and below the place.
func (c *copied) beside(above, below int64, full, ties bool) error {
	from, to := c.board.Place-above, c.board.Place+below
	if full && from < 0 {
		to -= from
	} else if full && to > c.board.Members {
		from -= to - c.board.Members
	}
	return c.rows(from, to, ties)
}

// shadow reads the row of a member, even of a banned one, with the rank that it would have.
func (c *copied) shadow(member string) error {
	c.board.Standings = []ranking.Standing{{Member: member}}
	if member == "" || !utf8.ValidString(member) || c.hidden != nil && c.hidden.Erased(member) {
		return nil
	}
	rows, err := c.store.Members(c.ctx, c.window.ID, []string{member})
	if err == nil && len(rows) == 1 {
		c.board.Standings[0] = c.standing(&rows[0])
	}
	return err
}

// members reads the rows of members, in the given order.
func (c *copied) members(ties bool, members ...string) error {
	if len(members) > MostMembers {
		return &askedError{fmt.Errorf("read %s: %d members at once, at most %d are possible", c.board.Name, len(members), MostMembers)}
	}
	// Databases refuse other ids, and no event can have them.
	valid := slices.DeleteFunc(slices.Clone(members), func(id string) bool { return id == "" || !utf8.ValidString(id) })
	rows, err := c.store.Members(c.ctx, c.window.ID, valid)
	if err != nil {
		return err
	}
	found := make(map[string]*store.Row, len(rows))
	for i := range rows {
		if !c.unshown.has(rows[i].Place) {
			found[rows[i].Member] = &rows[i]
		}
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
