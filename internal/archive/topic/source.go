package topic

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking/boards"
)

// source reads final windows.
type source interface {
	// window returns the window to publish; ok is false if it is not available yet.
	window(ctx context.Context, c *boards.Closed) (w store.Window, ok bool, err error)
	// rows returns all rows by rank. An error ends the sequence.
	rows(ctx context.Context, c *boards.Closed, w *store.Window) iter.Seq2[store.Row, error]
}

// fromArchive reads complete copies, which do not change, whatever happens to Redis. It omits the rows of members
// that were banned when the copy was taken, or erased since.
type fromArchive struct{ *store.Store }

func (a fromArchive) window(ctx context.Context, c *boards.Closed) (store.Window, bool, error) {
	w, err := a.Revision(ctx, c.Board, c.Period, c.Name, c.Revision)
	if errors.Is(err, store.ErrNotFound) {
		return w, false, nil
	}
	return w, err == nil, err
}

func (a fromArchive) rows(ctx context.Context, _ *boards.Closed, w *store.Window) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		var sum store.Checksum
		rank := int64(0)
		for row, err := range a.Each(ctx, w.ID) {
			if err != nil {
				yield(row, err)
				return
			}
			sum.Add(&row, len(w.Fields))
			if row.Rank == 0 || row.Erased() {
				continue
			}
			rank++
			if row.Rank = rank; !yield(row, nil) {
				return
			}
		}
		if sum != w.Checksum {
			yield(store.Row{}, fmt.Errorf("%s: %w: its rows have the checksum %s, and were written with %s", w, store.ErrDiffers, sum, w.Checksum))
		}
	}
}

// fromRedis reads from Redis as the archiver does.
type fromRedis struct{ *archive.Archiver }

func (f fromRedis) window(ctx context.Context, c *boards.Closed) (store.Window, bool, error) {
	w, err := f.Describe(ctx, c)
	return w, err == nil, err
}

func (f fromRedis) rows(ctx context.Context, c *boards.Closed, w *store.Window) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for row, err := range f.Shown(ctx, c, w.Members) {
			if !yield(row, err) || err != nil {
				return
			}
		}
		// Every page had the same revision, but may have had another seal: Redis may have gone back to before the
		// seal of the first pages, and the window was sealed again.
		if err := f.sealed(ctx, c); err != nil {
			yield(store.Row{}, err)
		}
	}
}

// sealed returns ErrChanged if a window's seal is no longer the one that was listed.
func (f fromRedis) sealed(ctx context.Context, c *boards.Closed) error {
	var latest int64
	for _, s := range f.Boards.Shards() {
		is, err := s.SealOf(ctx, c.Listing())
		if err != nil {
			return err
		}
		if !is.Final || is.Revision != c.Revision {
			return fmt.Errorf("%w: it isn't final any more as revision %d", archive.ErrChanged, c.Revision)
		}
		latest = max(latest, is.At.UnixMicro())
	}
	if latest != c.SealedAt.UnixMicro() {
		return fmt.Errorf("%w: it was sealed again", archive.ErrChanged)
	}
	return nil
}
