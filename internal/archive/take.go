package archive

// One final window, page by page.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

// errChanged: the window isn't any more what it was when its copy began. It passes.
var errChanged = errors.New("the window changed")

// archive takes a window, or finds that it is in the archive.
func (a *Archiver) archive(ctx context.Context, f store.Fence, c *boards.Closed) error {
	began := time.Now()
	first, err := a.page(ctx, c, nil, 0)
	if err != nil {
		return fmt.Errorf("archive %s: %w", c.Listing(), err)
	}
	w, err := a.Store.Begin(ctx, f, a.window(c, &first))
	if err != nil {
		return err
	}
	if w.Whole() {
		return a.compare(ctx, c, w.Window(), first.Members)
	}
	a.progress.Window, a.progress.Members = c.Listing(), first.Members
	if err := a.copy(ctx, c, w); err != nil {
		return a.drop(ctx, w, fmt.Errorf("archive %s: %w", c.Listing(), err))
	}
	if err := w.Finish(ctx); err != nil {
		return a.drop(ctx, w, err)
	}
	a.kept[c.Listing()] = c.Revision
	a.progress.Taken++
	a.Log.Info("a final window is in the archive", zap.String("window", c.Listing()), zap.Int64("revision", c.Revision),
		zap.Int64("members", w.Written()), zap.Stringer("checksum", w.Window().Checksum), zap.Duration("took", time.Since(began)))
	return nil
}

// drop drops a copy whose rows aren't the window's, so that it is begun anew. Any other error
// leaves it to be gone on with.
func (a *Archiver) drop(ctx context.Context, w *store.Writing, err error) error {
	if !errors.Is(err, errChanged) && !errors.Is(err, store.ErrDiffers) && !errors.Is(err, store.ErrInvalid) {
		return err
	}
	return errors.Join(err, w.Discard(ctx))
}

// window is what the archive says of it.
func (a *Archiver) window(c *boards.Closed, first *ranking.Board) store.Window {
	return store.Window{
		Board: c.Board, Period: c.Period, Name: c.Name, Start: time.UnixMilli(c.Start), End: time.UnixMilli(c.End),
		Revision: c.Revision, AsOf: c.SealedAt, SealedAt: c.SealedAt, Fields: a.Fields(c.Board), Zone: a.Zone(c.Period), Tick: first.Tick, MaxPoints: a.mostPoints(c.Board, c.Period),
		Ledger: c.Ledger, ReopenedWhy: c.ReopenedWhy, Incomplete: first.Incomplete, Members: first.Members,
	}
}

// copy appends the rows that aren't in yet.
func (a *Archiver) copy(ctx context.Context, c *boards.Closed, w *store.Writing) error {
	rows := make([]store.Row, 0, a.append)
	add := func() error {
		before := w.Written()
		if err := w.Append(ctx, rows); err != nil {
			return err
		}
		a.progress.Rows, a.progress.Written = w.Written(), a.progress.Written+w.Written()-before
		a.Progress(a.progress)
		rows = rows[:0]
		return nil
	}
	// Of a copy that goes on the last row is read again, for the archive to compare: if members were
	// hidden or shown meanwhile, another one has its rank.
	for row, err := range a.rows(ctx, c, max(0, w.Written()-1), w.Window().Members) {
		if err != nil {
			return err
		}
		if rows = append(rows, row); len(rows) == a.append {
			if err := add(); err != nil {
				return err
			}
		}
	}
	if len(rows) > 0 {
		return add()
	}
	return nil
}

// rows are those of a window below the first so many, page by page. Where it hasn't as many members as
// it is to have, on every page, and in all, the error is errChanged: some were hidden or shown.
func (a *Archiver) rows(ctx context.Context, c *boards.Closed, from, members int64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		var after *ranking.Pivot
		for rank := from; ; {
			asked := time.Now()
			b, err := a.page(ctx, c, after, from)
			if err == nil && b.Members != members {
				err = fmt.Errorf("%w: it has %d members, and had %d", errChanged, b.Members, members)
			}
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			took := time.Since(asked)
			for i := range b.Standings {
				rank++
				if !yield(row(&b, &b.Standings[i], rank), nil) {
					return
				}
			}
			if len(b.Standings) < a.pages {
				if rank != members {
					yield(store.Row{}, fmt.Errorf("%w: there are %d rows of %d members", errChanged, rank, members))
				}
				return
			}
			last := b.Standings[len(b.Standings)-1].Pivot()
			after = &last
			if err := retry.Sleep(ctx, took); err != nil {
				yield(store.Row{}, err)
				return
			}
		}
	}
}

// row is a standing as the archive has it. Its rank is where it is among the rows.
func row(b *ranking.Board, st *ranking.Standing, rank int64) store.Row {
	r := store.Row{Rank: rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
	if b.Fields.Len() == 0 {
		r.Tuple = codec.Tuple{st.Points}
	}
	return r
}

// page reads one: after a place, or from the first so many rows on. It is errChanged where the
// window isn't final any more, or of another revision.
func (a *Archiver) page(ctx context.Context, c *boards.Closed, after *ranking.Pivot, from int64) (b ranking.Board, err error) {
	w := periods.Window{Period: periods.Period(c.Period), Name: c.Name, Start: c.Start, End: c.End}
	if after != nil {
		b, err = a.Boards.After(ctx, c.Board, w, *after, a.pages)
	} else {
		b, err = a.Boards.Top(ctx, c.Board, w, int(from), a.pages)
	}
	switch {
	case err != nil:
		return b, err
	case b.Lost != "":
		return b, fmt.Errorf("%w: Redis has lost it (%s)", errChanged, b.Lost)
	case b.Revision != c.Revision:
		return b, fmt.Errorf("%w: it was final, of revision %d, and isn't any more", errChanged, c.Revision)
	}
	return b, nil
}

// compare holds what Redis has against a copy of the same revision that is whole. Most often the
// copy was made of this very seal, and that is that.
func (a *Archiver) compare(ctx context.Context, c *boards.Closed, there store.Window, members int64) error {
	if there.SealedAt.UnixMilli() == c.SealedAt.UnixMilli() {
		a.kept[c.Listing()] = c.Revision
		return nil
	}
	var sum store.Checksum
	for row, err := range a.rows(ctx, c, 0, members) {
		if err != nil {
			return fmt.Errorf("compare %s with the archive: %w", c.Listing(), err)
		}
		sum.Add(&row, len(there.Fields))
	}
	if members == there.Members && sum == there.Checksum {
		a.Log.Info("a window that was sealed again has the standings that the archive has", zap.String("window", c.Listing()), zap.Int64("revision", c.Revision))
		a.kept[c.Listing()] = c.Revision
		return nil
	}
	if err := Unseal(ctx, a.Boards, c, fmt.Sprintf("the archive has other standings as revision %d", c.Revision)); err != nil {
		return fmt.Errorf("take back the seal of %s, whose revision %d the archive has with other standings: %w", c.Listing(), c.Revision, err)
	}
	a.Log.Warn("a window that was sealed again has other standings than the archive: it is sealed as the next revision, and both stay",
		zap.String("window", c.Listing()), zap.Int64("revision", c.Revision), zap.Int64("members", members), zap.Int64("archived", there.Members))
	return nil
}
