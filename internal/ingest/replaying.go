package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
)

// A worker that replays: it ends where it is told to, which is never past the live
// ledger. Everything else it does as a consumer's worker.

// errThrough says that a replay has come to where it was to end.
var errThrough = errors.New("the replay is through")

// reached reports whether a position is the one that a replay ends at.
func (w *worker) reached(at ledger.Position) bool { return w.until != nil && at == *w.until }

// below is the hash that a replay ends a sweep at, where it ends in that one; else 0.
func (w *worker) below(at ledger.Position) uint64 {
	if w.until != nil && w.until.From == at.From && w.until.To == at.To {
		return w.until.Hash
	}
	return 0
}

// replay reads from a position to the one that the replay ends at: all records before
// its offset, and then, if that is in the middle of a sweep, those of the sweep whose
// members were swept.
func (r *reader) replay(ctx context.Context, at ledger.Position) error {
	until := *r.until
	r.end = end{}
	for offset := at.From; offset < until.From; {
		if r.end.confirmed() {
			return truncated(r.field, until, bounds{end: offset})
		}
		var err error
		if offset, err = r.step(ctx, offset, until.From); err != nil {
			return err
		}
	}
	// A batch that is closed may be swept before one that is still open.
	if err := r.batches.drain(ctx); err != nil {
		return err
	}
	if until.Sweeping() && !r.reached(at) {
		if _, err := r.resume(ctx, ledger.Position{From: until.From, To: until.To}); err != nil {
			return err
		}
	}
	return errThrough
}

// replayed works on a partition from one position to another, and waits out what passes.
func (w *worker) replayed(ctx context.Context, at, until ledger.Position) error {
	w.until = &until
	wait := newWait()
	for at != until {
		if !Leads(at, until) {
			return fmt.Errorf("%s stands at %v, and was to come to %v: %w", w.field, at, until, ErrWentBack)
		}
		err := w.work(ctx, at)
		switch halt, halted := errors.AsType[*Halt](w.judge(err)); {
		case errors.Is(err, errThrough):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case halted:
			return halt
		case err != nil && w.Standings.Meaning(err) == ledger.Refuse:
			return err
		case !errors.Is(err, errMoved):
			w.waiting(err)
		}
		if err := wait.next(ctx); err != nil {
			return err
		}
		outside := errors.Is(err, kafka.OffsetOutOfRange)
		if at, err = w.shadowed(ctx); err != nil {
			return err
		}
		if outside && at != until {
			if err := w.outside(ctx, at, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside is what it comes to where a broker doesn't have an offset, by what the leader
// says of the log: nil to ask for it again. Past the end of what it has may be a follower
// that still takes itself for the leader.
func (w *worker) outside(ctx context.Context, at, until ledger.Position) error {
	all, err := w.kafka.bounds(ctx, w.topic, w.partition)
	log := all[w.partition]
	switch {
	case err != nil:
		w.pastSince = time.Time{} // what isn't seen now may be of a new leader afterwards
	case log.start > at.From:
		return fmt.Errorf("%w: %s at offset %d, and offset %d wasn't read yet", ErrLogMoved, w.field, log.start, at.From)
	case log.end < until.To:
		err = w.confirmTruncated(until, log)
	default:
		w.pastSince = time.Time{}
		return nil
	}
	if halt, ok := errors.AsType[*Halt](w.judge(err)); ok {
		return halt
	}
	w.waiting(err)
	return nil
}

// shadowed is where the ledger of the replay's standings is, once that is known.
func (w *worker) shadowed(ctx context.Context) (ledger.Position, error) {
	wait := newWait()
	for {
		text, err := w.Standings.Position(ctx, w.topic, w.partition)
		if err == nil {
			return positionOf(w.field, text)
		}
		if w.Standings.Meaning(err) != ledger.Retry {
			return ledger.Position{}, err
		}
		w.waiting(err)
		if err := wait.next(ctx); err != nil {
			return ledger.Position{}, err
		}
	}
}

func positionOf(field, text string) (ledger.Position, error) {
	if text == "" {
		return ledger.Position{}, fmt.Errorf("%s: %w", field, ErrShadowLost)
	}
	at, err := ledger.Parse(text)
	if err != nil {
		return ledger.Position{}, fmt.Errorf("the shadow's ledger of %s: %w", field, err)
	}
	return at, nil
}

// Leads reports whether a sweep that stands at one position can come to another.
func Leads(from, to ledger.Position) bool {
	switch {
	case from == to:
		return true
	case from.Sweeping() && from.From == to.From && from.To == to.To:
		return to.Hash > from.Hash
	case from.Sweeping():
		return to.From >= from.To
	}
	return to.From > from.From || to.From == from.From && to.Sweeping()
}

// waitOut has Kafka asked again until it has answered.
func waitOut(ctx context.Context, ask func() error) error {
	wait := newWait()
	for {
		err := ask()
		code, answered := errors.AsType[kafka.Error](err)
		_, network := errors.AsType[net.Error](err)
		lost := network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if answered && Meaning(code) != ledger.Retry || !answered && !lost {
			return err
		}
		if err := wait.next(ctx); err != nil {
			return err
		}
	}
}
