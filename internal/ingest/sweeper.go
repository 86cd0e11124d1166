package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// sweeper applies a partition's batches piece by piece. It alone knows where the
// ledger should stand.
type sweeper struct {
	*worker
	at    ledger.Position
	calls context.Context //nolint:containedctx // of the pieces: outlives run's by lastCall
	taken int64           // events of the sweep's pieces so far: already counted as consumed
}

// lastCall is how long a piece in flight is waited for at the end of a generation.
const lastCall = 3 * time.Second

// outlive is a context that ends a while after another.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// lookEvery is how often an idle worker looks at its ledger, so that a Redis
// that went back in time is seen where no event follows.
const lookEvery = time.Second

// run sweeps what comes until the context ends or the ledger turns out to be
// elsewhere. It stops between two pieces, never within one.
func (s *sweeper) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	calls, cancel := outlive(ctx, lastCall)
	defer cancel()
	s.calls = calls
	connections := s.reconnected.Load()
	for ctx.Err() == nil {
		err := s.next(ctx, look.C)
		if err == nil && s.reconnected.Load() != connections {
			// Behind a new connection there may be another Redis.
			connections = s.reconnected.Load()
			err = s.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// next waits for what is to be done, and does it. A look that is due goes first: where
// batches never end, chance would put it off.
func (s *sweeper) next(ctx context.Context, look <-chan time.Time) error {
	select {
	case <-look:
		return s.look(ctx)
	default:
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case b := <-s.batches.slot:
		return s.sweep(ctx, b)
	case b := <-s.batches.closed:
		return s.sweep(ctx, b)
	case swept := <-s.batches.quiet:
		defer close(swept)
		if b := s.batches.open(); b != nil {
			return s.sweep(ctx, b)
		}
		return nil
	case <-look:
		return s.look(ctx)
	}
}

// look compares the ledger with where it should stand.
func (s *sweeper) look(ctx context.Context) error {
	found, err := s.Standings.Position(ctx, s.topic, s.partition)
	if err != nil {
		return err
	}
	if found != s.at.String() {
		return &movedError{s.field, s.at, found}
	}
	if !s.at.Sweeping() && s.commits != nil {
		s.commits.still(s.topic, s.partition, s.at.From, s.trail)
	}
	s.looked()
	return nil
}

// sweep applies a batch. Its events without a member are counted with the last
// piece, since until then another owner may come to count them.
func (s *sweeper) sweep(ctx context.Context, b *batch) error {
	defer s.batches.recycle(b)
	s.lag.sweeping(b.oldest)
	s.trail = b.trail // of what was read, whether or not it comes to count
	s.pieces.Reset(b.Batch, s.topic, s.partition)
	defer s.pieces.Release()
	for {
		piece, events, ok := s.pieces.Next(s.pace.width())
		if !ok {
			break
		}
		answer, err := s.apply(ctx, piece, events)
		if err == nil && answer.Outcome == ledger.Refusing {
			if err = s.refuse(ctx, b, piece, answer.Refused); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		s.at = piece.Next
		s.taken += events
		if ctx.Err() != nil && s.at.Sweeping() {
			return context.Cause(ctx) // the next owner goes on from here
		}
	}
	s.swept(b.newest)
	if !s.at.Sweeping() {
		s.Stats.swept(b, s.taken, time.Now())
		s.taken = 0
		s.lag.counts(s.at.From, b.newest)
		s.commits.at(s.topic, s.partition, s.at.From, s.trail)
	}
	return nil
}

// apply sends a piece until its outcome is known: Applied, or Refusing. The call itself
// isn't ended with the context: a piece in flight is waited for a little longer, so that
// the next owner finds the ledger where it will stay.
func (s *sweeper) apply(ctx context.Context, p *ledger.Piece, events int64) (ledger.Answer, error) {
	wait := newWait()
	for {
		width := p.Width()
		answer, took, err := s.Standings.Apply(s.calls, p)
		if err != nil {
			if err := s.failing(ctx, err, wait); err != nil {
				return ledger.Answer{}, err
			}
			continue
		}
		switch answer.Outcome {
		case ledger.Applied:
			s.writing(nil)
			s.pace.observe(width, took)
			s.Stats.applied(events, s.pieces.Refused(), width, took)
			return answer, nil
		case ledger.Refusing:
			return answer, nil
		case ledger.Held:
			if err := s.held(ctx); err != nil {
				return ledger.Answer{}, err
			}
		default:
			return ledger.Answer{}, s.refusal(p, answer)
		}
	}
}

// failing waits after an error of the standings that may pass, and returns any other.
func (s *sweeper) failing(ctx context.Context, err error, wait *wait) error {
	if s.Standings.Meaning(err) != ledger.Retry {
		return err
	}
	s.Stats.Retries.Add(1)
	s.writing(err)
	return wait.next(ctx)
}

// held waits a moment for a hold to go.
func (s *sweeper) held(ctx context.Context) error {
	s.writing(errHeld)
	return sleep(ctx, 100*time.Millisecond)
}

var errHeld = &Waiting{WaitsRebuild, errors.New("a rebuild is about to swap the boards"),
	"none is needed: the rebuild ends, or its hold runs out"}

// refusal is what an answer that isn't about the piece comes to.
func (s *sweeper) refusal(p *ledger.Piece, a ledger.Answer) error {
	switch a.Outcome {
	case ledger.Moved:
		return &movedError{s.field, p.Expected, a.Found}
	case ledger.OtherSchema:
		if err := s.Standings.CheckSchema(a.Found); err != nil {
			return &Halt{HaltSchema, fmt.Sprintf("%s: %v", s.field, err), "see there"}
		}
		return fmt.Errorf("%s: %w: Redis has lost its schema", s.field, errMoved)
	case ledger.Lost:
		return &Halt{HaltBoard, fmt.Sprintf("%s: the board %s is listed, and its key is gone from Redis", s.field, a.Window), rebuildRemedy}
	case ledger.Unlisted:
		return &Halt{HaltUnlisted, fmt.Sprintf("%s: the board %s has a key in Redis that isn't listed: something else wrote it, or a part of Redis was restored", s.field, a.Window),
			"delete that key if it isn't yours, else " + rebuildRemedy}
	case ledger.OtherBounds:
		return &Halt{HaltBounds, fmt.Sprintf("%s: the window %s is listed as [%s], and the calendar here cuts it otherwise", s.field, a.Window, a.Found),
			"run the version with the time zone data that it was begun with, or " + rebuildRemedy}
	case ledger.Foreign:
		return &Halt{HaltForeign, fmt.Sprintf("%s: the score of %q in %s is none that this layout writes: something else changed it", s.field, strings.Join(a.Members, " "), a.Window), rebuildRemedy}
	}
	s.log.DPanic("an outcome that nobody foresaw", zap.Stringer("outcome", a.Outcome))
	return &Halt{HaltRedis, fmt.Sprintf("%s: unexpected outcome %v", s.field, a.Outcome), "report this as a bug"}
}
