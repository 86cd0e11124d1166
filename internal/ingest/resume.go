package ingest

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// resume goes on with a sweep that another owner began, or this one before: it
// reads [from, to) again and folds only the members from the position's hash on.
// What its memory can't hold it sweeps in several readings, each of the lowest
// hashes that fit. It returns the position after the reading. A replay that ends in the
// same sweep goes no further than there.
func (r *reader) resume(ctx context.Context, at ledger.Position) (ledger.Position, error) {
	r.log.Info("going on with a sweep", zap.Stringer("position", at))
	taken := at.Hash // what was swept before this owner came counts as repeated
	for at.Sweeping() && !r.reached(at) {
		b := r.fresh(at, taken)
		b.Below(r.below(at))
		err := r.reread(ctx, b, at)
		if err != nil {
			r.batches.recycle(b)
			if !errors.Is(err, errNoMemory) {
				return at, err
			}
			r.letters.forget()
			if err := r.waitForMemory(ctx); err != nil {
				return at, err
			}
			continue
		}
		b.MoveTo(at.To)
		b.trail = r.times.at(at.To)
		if at = b.End(); at.Sweeping() {
			b.tally = tally{} // counted by the last reading
		}
		if err := r.close(ctx, b); err != nil {
			return at, err
		}
		// The next reading needs the memory of this one.
		if err := r.batches.drain(ctx); err != nil {
			return at, err
		}
	}
	return at, nil
}

// reread folds a sweep's range of offsets. Without memory it first asks for a
// reserve; on one it leaves the upper half of the hashes to another reading, and
// starts again.
func (r *reader) reread(ctx context.Context, b *batch, at ledger.Position) error {
	r.end, r.holds = end{}, true
	defer func() { r.holds = false }()
	for offset := at.From; offset < at.To; {
		if r.end.confirmed() {
			if r.until != nil { // nobody else looks at what the log has
				return truncated(r.field, *r.until, bounds{end: offset})
			}
			return fmt.Errorf("%s: the log ends at offset %d, in the middle of the sweep %v: %w", r.field, offset, at, errAgain)
		}
		resp, err := r.fetch(ctx, offset)
		if err == nil {
			before := b.records
			offset, err = r.fold(ctx, b, resp, offset, at.To)
			r.Stats.Records.Add(b.records - before)
			resp.Release()
		}
		switch {
		case err == nil:
		case errors.Is(err, errFull), errors.Is(err, errNoMemory):
			if !r.hasTurn {
				return errNoMemory
			}
			if !b.Halve() {
				return r.tooLarge(offset)
			}
			b.tally, b.records = tally{}, 0
			r.letters.forget()
			offset = at.From
		default:
			return err
		}
	}
	r.again = true // further readings of the same sweep write none
	return r.letters.flush(ctx)
}
