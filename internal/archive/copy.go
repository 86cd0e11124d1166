package archive

// Copying one window to the archive.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// ErrChanged reports that a window changed after its copy began. The next attempt may succeed.
var ErrChanged = errors.New("the window changed")

// archive copies a window, unless the archive already has it. The error is ErrChanged if the window changed
// meanwhile.
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

// write writes a copy of a window; nil if the archive already has the revision.
func (a *Archiver) write(ctx context.Context, f store.Fence, c *boards.Closed) (*store.Window, error) {
	if c.Revision == 0 {
		return a.writeOpen(ctx, f, c)
	}
	of, err := a.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	w, err := a.Store.Begin(ctx, f, a.describe(of))
	if err != nil {
		return nil, err
	}
	if w.Whole() {
		return nil, a.compare(ctx, of, w.Window())
	}
	if w.Written() > 0 {
		if of.last, of.shown, err = w.Last(ctx); err != nil {
			return nil, err
		}
	}
	return a.finish(ctx, c, w, a.rows(ctx, of))
}

// finish appends the remaining rows and finishes the copy. If the copy's rows turn out not to be the window's, the
// copy is dropped, and the next pass starts again. After any other error the next pass continues the copy.
func (a *Archiver) finish(ctx context.Context, c *boards.Closed, w *store.Writing, rows iter.Seq2[store.Row, error]) (*store.Window, error) {
	is := w.Window()
	a.progress.Window, a.progress.Members = c.Listing(), is.Places()
	err := a.appendAll(ctx, w, rows)
	if err == nil {
		err = w.Finish(ctx)
	}
	if errors.Is(err, ErrChanged) || errors.Is(err, store.ErrDiffers) || errors.Is(err, store.ErrInvalid) {
		err = errors.Join(err, w.Discard(ctx))
	}
	is = w.Window()
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

// describe returns the archive's description of a window.
func (a *Archiver) describe(of *begun) store.Window {
	c, first := of.Closed, &of.first
	w := store.Window{
		Board: c.Board, Period: c.Period, Name: c.Name, Start: time.UnixMilli(c.Start), End: time.UnixMilli(c.End),
		Revision: c.Revision, AsOf: c.SealedAt, SealedAt: c.SealedAt, Fields: a.Fields(c.Board), Zone: a.Zone(c.Period), Tick: first.Tick,
		Ledger: c.Ledger, ReopenedWhy: c.ReopenedWhy, Incomplete: first.Incomplete, Members: first.Members, Hidden: int64(len(of.hidden)),
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

// Describe returns the archive's description of a final window. The error is ErrChanged if the window is no longer
// final.
func (a *Archiver) Describe(ctx context.Context, c *boards.Closed) (store.Window, error) {
	first, err := a.look(ctx, c)
	if err != nil {
		return store.Window{}, err
	}
	return a.describe(&begun{Closed: c, first: first}), nil
}

// compare compares the window in Redis with a complete copy of the same revision. Normally the copy has the same
// seal, and no rows are read.
func (a *Archiver) compare(ctx context.Context, of *begun, there store.Window) error {
	c := of.Closed
	if there.SealedAt.UnixMilli() == c.SealedAt.UnixMilli() {
		a.kept[c.Listing()] = c.Revision
		return nil
	}
	same := true
	err := Compare(a.Store.Each(ctx, there.ID), a.rows(ctx, of), a.erased, func(_, _ *store.Row) bool {
		same = false
		return false
	})
	if err != nil {
		return fmt.Errorf("compare %s with the archive: %w", c.Listing(), err)
	}
	if same {
		a.Log.Info("a window that was sealed again has the standings that the archive has", zap.String("window", c.Listing()), zap.Int64("revision", c.Revision))
		a.kept[c.Listing()] = c.Revision
		return nil
	}
	if err := Unseal(ctx, a.Boards, c, fmt.Sprintf("the archive has other standings as revision %d", c.Revision)); err != nil {
		return fmt.Errorf("take back the seal of %s, whose revision %d the archive has with other standings: %w", c.Listing(), c.Revision, err)
	}
	a.Log.Warn("a window that was sealed again has other standings than the archive: it is sealed as the next revision, and both stay",
		zap.String("window", c.Listing()), zap.Int64("revision", c.Revision), zap.Int64("members", of.first.Members), zap.Int64("archived", there.Members))
	return nil
}

// Unseal reopens a final window because another place has other standings of the same revision; its next sealing
// makes the next revision. Nothing is done if the window is no longer final or its retention is over.
func Unseal(ctx context.Context, all *boards.Boards, c *boards.Closed, why string) error {
	now, err := all.Now(ctx)
	if err == nil {
		_, err = all.Unseal(ctx, c.Window, now, why)
	}
	if errors.Is(err, ranking.ErrNotFinal) || errors.Is(err, ranking.ErrOver) {
		return nil
	}
	return err
}
