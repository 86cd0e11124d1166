package ingest

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// This file runs a reading: first the rest of a sweep, then one step after another to the endpoint, if there is
// one.

// run reads until ctx ends or an error stops it. What was folded by then is swept first, because the cause of a
// halt lies after it.
func (r *reader) run(ctx context.Context, at ledger.Positions) (err error) {
	defer func() {
		r.records.Close()
		r.deadLetters.Forget()
		// Don't wait for the memory of an abandoned call: it is released when the call ends.
		now, cancel := context.WithCancel(ctx)
		cancel()
		_ = r.source.Fetcher.Drop(now)
		if ctx.Err() == nil {
			err = errors.Join(err, r.batches.drain(ctx))
		}
	}()
	for !r.until.Reached(at) && at.Sweeping() {
		if err := r.begin(at); err != nil {
			return err
		}
		if at, err = r.resume(ctx, at); err != nil {
			return err
		}
	}
	if at.Lowest() < r.inherited.Level {
		if at, err = r.level(ctx, at); err != nil {
			return err
		}
	}
	if err := r.begin(at); err != nil {
		return err
	}
	if r.until.Before(r.reading.From) {
		if err := r.look(ctx, r.reading.From); err != nil {
			return err
		}
	}
	r.source.End = start.LogEnd{} // the log's end in a sweep was observed at another offset
	for offset := r.reading.From; r.until.Before(offset); {
		if r.until.Given() && r.source.End.Confirmed() {
			return start.Truncated(r.Field, *r.until.At, kafkaconn.Log{End: offset})
		}
		if offset, err = r.step(ctx, offset, r.until.Limit()); err != nil {
			return err
		}
	}
	return r.finish(ctx, at)
}

// begin starts the next reading, at the positions of the shards. A reading that goes back is for shards that
// the last reading left out.
func (r *reader) begin(at ledger.Positions) error {
	next := at.Next()
	if r.began != nil && next.From < r.reading.From {
		r.carried.written.Begin(next.From)
	}
	own := r.books.Own
	switch {
	case next.Resumes() && (next.Rules != 0 || r.until.Given()):
	case next.Resumes():
		if own.ID() != 0 {
			r.Log.Warn("a version that didn't note its rules began this sweep: finishing it by this process's", zap.Stringer("position", at))
		}
		next.Rules = own.ID()
	case next.From < r.inherited.Level:
		next.Rules = r.inherited.Rules
	default:
		next.Rules = own.ID()
	}
	r.reading, r.began, r.deadLettersWritten = next, at, false
	r.by = r.books.Of(next.Rules)
	if r.by != own {
		r.stats.OtherRules.Add(1)
		r.Log.Info("finishing a sweep by the rules of the process that began it, which differ from this process's", zap.Stringer("rules", r.by.ID()), zap.Stringer("position", at))
	}
	r.goBy(r.by)
	return nil
}

// goBy selects the rules by which the reader reads.
func (r *reader) goBy(by *rulebook.Book) {
	r.decoder = by.Decoder
	r.records.MaxCodec = max(r.records.MaxCodec, memory.EventCodec(int64(by.Events.MaxEventBytes)))
	r.remembers.by(by, r.status)
	if r.known = nil; r.remembers.set != nil {
		r.known, r.judge = r.remembers, fold.New(&by.Fold, r.turn.Account, 0)
	}
}

// level moves the shards that are behind to the position of the others, by the rules that moved the others
// there, and all shards to the same offset. After that, the reader continues by the process's own rules.
func (r *reader) level(ctx context.Context, at ledger.Positions) (ledger.Positions, error) {
	if err := r.begin(at); err != nil {
		return at, err
	}
	to := r.inherited.Level
	if err := r.look(ctx, r.reading.From); err != nil {
		return at, err
	}
	r.source.End = start.LogEnd{}
	for offset := r.reading.From; offset < to; {
		if r.source.End.Confirmed() {
			return at, r.until.ShortLog(r.Field, offset, ledger.Reading{From: r.reading.From, To: to})
		}
		var err error
		if offset, err = r.step(ctx, offset, to); err != nil {
			return at, err
		}
	}
	return ledger.AllAt(to, ledger.Shards(len(at))), r.batches.drain(ctx)
}

// finish reads up to the endpoint itself: if it is in the middle of a sweep, the sweep's records of the members
// below the endpoint's hash.
func (r *reader) finish(ctx context.Context, at ledger.Positions) error {
	// A batch that is closed may be swept before another that is still open.
	if err := r.batches.drain(ctx); err != nil {
		return err
	}
	if until := *r.until.At; until.Sweeping() && !r.until.Reached(at) {
		at = r.until.Sweep(at)
		if err := r.begin(at); err != nil {
			return err
		}
		if _, err := r.resume(ctx, at); err != nil {
			return err
		}
	}
	return replay.ErrReached
}

// resume continues the sweeps that another owner started, or that this worker started before. It reads their
// range [from, to) again and folds only members from the positions' hashes on. If the members don't fit in its
// memory, it reads the range several times, each time for the lowest hashes that fit. It returns the positions
// after the last reading. A replay that ends in the same sweep stops at its endpoint.
func (r *reader) resume(ctx context.Context, at ledger.Positions) (ledger.Positions, error) {
	r.Log.Info("going on with a sweep", zap.Stringer("position", at))
	for again := true; again && !r.until.Reached(at); {
		if err := r.look(ctx, r.reading.From); err != nil {
			return at, err
		}
		b := r.fresh(r.reading.From, at)
		b.Below(r.until.Below(at))
		err := r.reread(ctx, b)
		if err != nil {
			r.batches.recycle(b)
			if !errors.Is(err, source.ErrNoMemory) {
				return at, err
			}
			r.deadLetters.Forget()
			if err := r.turn.Wait(ctx); err != nil {
				return at, err
			}
			continue
		}
		b.MoveTo(r.reading.To)
		b.trail = r.trailAt(r.reading.To)
		at = b.Ends(at)
		if again = b.Cut(); again {
			b.again, b.Tally = true, counts.Tally{} // only the last reading counts them
		}
		if err := r.close(ctx, b); err != nil {
			return at, err
		}
		// The next reading needs this reading's memory.
		if err := r.batches.drain(ctx); err != nil {
			return at, err
		}
	}
	return at, nil
}

// reread folds a sweep's range of offsets. If memory runs out, it requests a reserve and starts again; if it
// holds nothing yet, it continues where it was. If the reserve runs out too, it first writes the dead letters
// that it has gathered, and then leaves the upper half of the hashes to another reading and starts again.
//
// Its batch can be swept only when the whole range was read. So the reread keeps this batch and its turn while
// it waits for a broker. If others want the memory and the broker has not answered for outagePatience or
// throttlePatience, it releases both (see turn.yields).
func (r *reader) reread(ctx context.Context, b *batch) error {
	r.source.End, r.sweep, r.halved = start.LogEnd{}, b, false
	defer func() { r.sweep = nil }()
	for offset := r.reading.From; offset < r.reading.To; {
		if r.source.End.Confirmed() {
			return r.until.ShortLog(r.Field, offset, r.reading)
		}
		resp, err := r.source.Fetch(ctx, offset)
		if err == nil {
			before := b.records
			offset, err = r.foldOnce(ctx, b, resp, offset, r.reading.To)
			r.stats.Records.Add(b.records - before)
			resp.Release()
		}
		switch {
		case err == nil:
		case errors.Is(err, errFull), errors.Is(err, source.ErrNoMemory):
			switch {
			case !r.turn.Taken && r.holds():
				return source.ErrNoMemory
			case !r.turn.Taken:
				if err := r.turn.Wait(ctx); err != nil {
					return err
				}
				continue
			}
			if r.deadLetters.Holds() { // their memory may be all that is missing
				if err := r.deadLetters.Flush(ctx); err != nil {
					return err
				}
				continue
			}
			if !b.Halve() {
				return r.tooLarge(offset)
			}
			b.Tally, b.records, r.halved = counts.Tally{}, 0, true
			if err := r.look(ctx, r.reading.From); err != nil {
				return err
			}
			offset, r.source.End = r.reading.From, start.LogEnd{}
		default:
			return err
		}
	}
	r.deadLettersWritten = true // later readings of the same sweep write no dead letters
	return r.deadLetters.Flush(ctx)
}
