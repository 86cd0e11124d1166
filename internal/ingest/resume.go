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

// holds reports whether the reader holds what it would have to read again: a reread's
// batch, or dead letters that it gathered, once there is anything in them. Until then a
// reread waits as everybody does, with nothing.
func (r *reader) holds() bool {
	return r.sweep != nil && (r.sweep.Held() > 0 || r.letters.charged > 0)
}

// reread folds a sweep's range of offsets. Without memory it first asks for a
// reserve; on one it leaves the upper half of the hashes to another reading, and
// starts again. Where nothing was folded so far there is nothing to start again.
//
// Its batch can't be swept before the range is read, so it alone is held while a broker is
// waited for, with its turn, and goes to whoever wants the memory once that has taken
// outagePatience or throttlePatience without an answer (see yields).
func (r *reader) reread(ctx context.Context, b *batch, at ledger.Position) error {
	r.end, r.sweep = end{}, b
	defer func() { r.sweep = nil }()
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
			switch {
			case !r.hasTurn && r.holds():
				return errNoMemory
			case !r.hasTurn:
				if err := r.waitForMemory(ctx); err != nil {
					return err
				}
				continue
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
