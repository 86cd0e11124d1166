package archive

// One window copied to the archive.

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

// ErrChanged says that a window changed since its copy began. The next try may succeed.
var ErrChanged = errors.New("the window changed")

// archive copies a window, or finds that it is in the archive. The error is ErrChanged if it changed meanwhile.
func (a *Archiver) archive(ctx context.Context, f store.Fence, c *boards.Closed) error {
	began := time.Now()
	w, err := a.write(ctx, f, c)
	if errors.Is(err, ranking.ErrServerChanged) {
		err = fmt.Errorf("%w: %w", ErrChanged, err)
	}
	if errors.Is(err, ErrChanged) {
		a.Log.Info("a window changed while it was archived: it is copied again", zap.String("window", c.Listing()), zap.Error(err))
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", c.Listing(), err)
	}
	if w == nil {
		return nil
	}
	copied, message := &a.progress.Final, "a final window is in the archive"
	if c.Revision > 0 {
		a.kept[c.Listing()] = c.Revision
	} else {
		a.backups[c.Listing()] = w.AsOf
		copied, message = &a.progress.Backups, "an open window has a backup"
	}
	copied.Windows++
	a.Log.Info(message, zap.String("window", c.Listing()), zap.Int64("revision", c.Revision),
		zap.Int64("members", w.Members), zap.Stringer("checksum", w.Checksum), zap.Duration("took", time.Since(began)))
	return nil
}

// write writes a window's copy; nil if the archive has the revision.
func (a *Archiver) write(ctx context.Context, f store.Fence, c *boards.Closed) (*store.Window, error) {
	if c.Revision == 0 {
		return a.writeOpen(ctx, f, c)
	}
	first, err := a.look(ctx, c)
	if err != nil {
		return nil, err
	}
	w, err := a.Store.Begin(ctx, f, a.describe(c, &first))
	if err != nil {
		return nil, err
	}
	if w.Whole() {
		return nil, a.compare(ctx, c, w.Window(), first.Members)
	}
	// The last row that is in is read again, and the archive compares it: if members were hidden or shown
	// since, another member has its rank.
	return a.finish(ctx, c, w, a.rows(ctx, c, max(0, w.Written()-1), first.Members))
}

// finish appends the rows that aren't in yet, and finishes the copy. A copy whose rows aren't the window's is
// dropped, and the next pass begins it anew; after any other error the next pass continues it.
func (a *Archiver) finish(ctx context.Context, c *boards.Closed, w *store.Writing, rows iter.Seq2[store.Row, error]) (*store.Window, error) {
	a.progress.Window, a.progress.Members = c.Listing(), w.Window().Members
	err := a.appendAll(ctx, w, rows)
	if err == nil {
		err = w.Finish(ctx)
	}
	if errors.Is(err, ErrChanged) || errors.Is(err, store.ErrDiffers) || errors.Is(err, store.ErrInvalid) {
		err = errors.Join(err, w.Discard(ctx))
	}
	is := w.Window()
	return &is, err
}

func (a *Archiver) appendAll(ctx context.Context, w *store.Writing, rows iter.Seq2[store.Row, error]) error {
	written := &a.progress.Backups.Rows
	if is := w.Window(); is.Final() {
		written = &a.progress.Final.Rows
	}
	some := make([]store.Row, 0, a.append)
	add := func() error {
		before := w.Written()
		if err := w.Append(ctx, some); err != nil {
			return err
		}
		*written += w.Written() - before
		a.progress.Rows = w.Written()
		a.Progress(a.progress)
		some = some[:0]
		return nil
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		if some = append(some, row); len(some) == a.append {
			if err := add(); err != nil {
				return err
			}
		}
	}
	if len(some) > 0 {
		return add()
	}
	return nil
}

// describe is the archive's description of a window.
func (a *Archiver) describe(c *boards.Closed, first *ranking.Board) store.Window {
	w := store.Window{
		Board: c.Board, Period: c.Period, Name: c.Name, Start: time.UnixMilli(c.Start), End: time.UnixMilli(c.End),
		Revision: c.Revision, AsOf: c.SealedAt, SealedAt: c.SealedAt, Fields: a.Fields(c.Board), Zone: a.Zone(c.Period), Tick: first.Tick,
		Ledger: c.Ledger, ReopenedWhy: c.ReopenedWhy, Incomplete: first.Incomplete, Members: first.Members,
	}
	if c.Revision == 0 {
		w.AsOf, w.Ledger = first.Beside.Now, first.Beside.Ledger
	}
	layout, ok := a.Boards.Layout(c.Board, periods.Period(c.Period))
	if ok && w.Fields == nil && layout.Packing.Fields.Len() > 0 {
		w.MaxPoints = layout.Packing.Fields.At(0).Max
	}
	return w
}

// rows are those of a final window below the first so many, page by page. The error is ErrChanged if a page says
// another number of members, or the rows are another number: some members were hidden or shown.
func (a *Archiver) rows(ctx context.Context, c *boards.Closed, from, members int64) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		var after *ranking.Pivot
		for rank := from; ; {
			asked := time.Now()
			var b ranking.Board
			var err error
			if after != nil {
				b, err = a.Boards.After(ctx, c.Board, windowOf(c), *after, a.pages)
			} else {
				b, err = a.Boards.Top(ctx, c.Board, windowOf(c), int(from), a.pages)
			}
			if err == nil {
				err = check(c, &b)
			}
			if err == nil && b.Members != members {
				err = fmt.Errorf("%w: it has %d members, and had %d", ErrChanged, b.Members, members)
			}
			if err != nil {
				yield(store.Row{}, err)
				return
			}
			took := time.Since(asked)
			for i := range b.Standings {
				rank++
				if !yield(row(b.Fields.Len() > 0, &b.Standings[i], rank), nil) {
					return
				}
			}
			if len(b.Standings) < a.pages {
				if rank != members {
					yield(store.Row{}, fmt.Errorf("%w: there are %d rows of %d members", ErrChanged, rank, members))
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

// row is a standing as the archive has it, of a board with fields or without.
func row(fields bool, st *ranking.Standing, rank int64) store.Row {
	r := store.Row{Rank: rank, Member: st.Member, Tuple: st.Tuple, Score: st.Score, ReachedAt: st.ReachedAt.UnixMilli()}
	if !fields {
		r.Tuple = codec.Tuple{st.Points}
	}
	return r
}

func windowOf(c *boards.Closed) periods.Window {
	return periods.Window{Period: periods.Period(c.Period), Name: c.Name, Start: c.Start, End: c.End}
}

// look reads what there is to say of a window, without rows.
func (a *Archiver) look(ctx context.Context, c *boards.Closed) (ranking.Board, error) {
	b, err := a.Boards.Top(ctx, c.Board, windowOf(c), 0, 0)
	if err == nil {
		err = check(c, &b)
	}
	return b, err
}

// check is ErrChanged if a window isn't the one that was listed any more.
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
