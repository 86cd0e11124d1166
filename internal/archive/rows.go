package archive

// The rows of a final window. Shown rows are read page by page. Hidden members are few; their rows are read at
// once and merged between the shown rows.

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

// begun is the state of a final window before its rows are read.
type begun struct {
	*boards.Closed

	first  ranking.Board
	hidden []ranking.Standing // in the board's order
	// last is the last row that the copy already has, and shown the number of its shown rows; zero if it has none.
	last  store.Row
	shown int64
}

// begin reads a final window and its hidden members, but not the shown rows.
func (a *Archiver) begin(ctx context.Context, c *boards.Closed) (*begun, error) {
	first, err := a.look(ctx, c)
	if err != nil {
		return nil, err
	}
	hidden, err := a.hidden(ctx, c)
	return &begun{Closed: c, first: first, hidden: hidden}, err
}

// hidden returns the rows of hidden members, in the board's order.
func (a *Archiver) hidden(ctx context.Context, c *boards.Closed) (all []ranking.Standing, err error) {
	for _, s := range a.Boards.Shards() {
		var some []ranking.Standing
		err := s.OnOneServer(ctx, func() error {
			some = some[:0]
			for page, err := range scanPages(ctx, c, s, true) {
				if err != nil {
					return err
				}
				some = append(some, page...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, boards.CompareRows)
	return slices.CompactFunc(all, func(x, y ranking.Standing) bool { return x.Member == y.Member }), nil
}

// Rows returns all rows of a final window in the board's order, including those of hidden members. The error is
// ErrChanged if members are hidden or shown meanwhile, or the window is no longer final.
func (a *Archiver) Rows(ctx context.Context, c *boards.Closed) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		of, err := a.begin(ctx, c)
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		a.rows(ctx, of)(yield)
	}
}

// rows returns the rows below the last one that the copy has.
func (a *Archiver) rows(ctx context.Context, of *begun) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		place, rank, hidden := of.last.Place, of.shown, of.hidden
		var after *ranking.Pivot
		if place > 0 {
			after = &ranking.Pivot{Score: of.last.Score, Member: of.last.Member}
			hidden = slices.DeleteFunc(slices.Clone(hidden), func(st ranking.Standing) bool { return !isBelow(&st, after) })
		}
		fields := of.first.Fields.Len() > 0
		add := func(st *ranking.Standing, isShown int64) bool {
			place, rank = place+1, rank+isShown
			return yield(row(fields, st, place, rank*isShown), nil)
		}
		for st, err := range a.shown(ctx, of.Closed, after, rank, of.first.Members) {
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			for ; len(hidden) > 0 && boards.CompareRows(hidden[0], *st) < 0; hidden = hidden[1:] {
				if !add(&hidden[0], 0) {
					return
				}
			}
			if !add(st, 1) {
				return
			}
		}
		for i := range hidden {
			if !add(&hidden[i], 0) {
				return
			}
		}
		if err := a.sameHidden(ctx, of, place); err != nil {
			yield(store.Row{}, err)
		}
	}
}

func isBelow(st *ranking.Standing, p *ranking.Pivot) bool {
	return cmp.Or(cmp.Compare(p.Score, st.Score), strings.Compare(p.Member, st.Member)) > 0
}

// sameHidden returns ErrChanged if the hidden members are not those of the beginning: a member that was hidden or
// shown between two reads may be in neither result.
func (a *Archiver) sameHidden(ctx context.Context, of *begun, rows int64) error {
	if wanted := of.first.Members + int64(len(of.hidden)); rows != wanted {
		return fmt.Errorf("%w: there are %d rows, and were to be %d", ErrChanged, rows, wanted)
	}
	now, err := a.hidden(ctx, of.Closed)
	if err == nil && !slices.Equal(now, of.hidden) {
		err = fmt.Errorf("%w: members were hidden or shown", ErrChanged)
	}
	return err
}

// Shown returns the rows that a final window shows. The error is ErrChanged if there are not exactly members rows.
func (a *Archiver) Shown(ctx context.Context, c *boards.Closed, members int64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		fields, rank := a.Fields(c.Board) != nil, int64(0)
		for st, err := range a.shown(ctx, c, nil, 0, members) {
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			if rank++; !yield(row(fields, st, rank, rank), nil) {
				return
			}
		}
	}
}

// shown returns the standings below a pivot, page by page; a nil pivot means from the top. rank is the number of
// shown rows above them. The error is ErrChanged if a page reports another number of members, or if fewer or more
// than members rows are found in all, since then members were hidden or shown.
func (a *Archiver) shown(ctx context.Context, c *boards.Closed, after *ranking.Pivot, rank, members int64) iter.Seq2[*ranking.Standing, error] {
	return func(yield func(*ranking.Standing, error) bool) {
		for {
			asked := time.Now()
			var b ranking.Board
			var err error
			if after != nil {
				b, err = a.Boards.After(ctx, c.Board, windowOf(c), *after, a.pages)
			} else {
				b, err = a.Boards.Top(ctx, c.Board, windowOf(c), 0, a.pages)
			}
			if err == nil {
				err = check(c, &b)
			}
			if err == nil && b.Members != members {
				err = fmt.Errorf("%w: it has %d members, and had %d", ErrChanged, b.Members, members)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			took := time.Since(asked)
			for i := range b.Standings {
				if !yield(&b.Standings[i], nil) {
					return
				}
			}
			rank += int64(len(b.Standings))
			if len(b.Standings) < a.pages {
				if rank != members {
					yield(nil, fmt.Errorf("%w: there are %d rows of %d members", ErrChanged, rank, members))
				}
				return
			}
			last := b.Standings[len(b.Standings)-1].Pivot()
			after = &last
			if err := retry.Sleep(ctx, took); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// row converts a standing to a row of the archive. Rank is 0 for a hidden member.
func row(fields bool, st *ranking.Standing, place, rank int64) store.Row {
	r := store.Row{Place: place, Rank: rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
	if !fields {
		r.Tuple = codec.Tuple{st.Points}
	}
	return r
}

func windowOf(c *boards.Closed) periods.Window {
	return periods.Window{Period: periods.Period(c.Period), Name: c.Name, Start: c.Start, End: c.End}
}

// look reads a window without its rows.
func (a *Archiver) look(ctx context.Context, c *boards.Closed) (ranking.Board, error) {
	b, err := a.Boards.Top(ctx, c.Board, windowOf(c), 0, 0)
	if err == nil {
		err = check(c, &b)
	}
	return b, err
}

// check returns ErrChanged if a window is no longer in the state that was listed.
func check(c *boards.Closed, b *ranking.Board) error {
	switch {
	case b.Lost != "":
		return fmt.Errorf("%w: Redis has lost it (%s)", ErrChanged, b.Lost)
	case !b.Listed:
		return fmt.Errorf("%w: it isn't listed any more", ErrChanged)
	case b.Revision != c.Revision && c.Revision == 0:
		return fmt.Errorf("%w: it is final, as revision %d", ErrChanged, b.Revision)
	case b.Revision != c.Revision:
		return fmt.Errorf("%w: it isn't final any more as revision %d", ErrChanged, c.Revision)
	}
	return nil
}
