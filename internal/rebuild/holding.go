package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/retry"
)

// betweenTries is how long consumers have to themselves between two holds, or Redis between two tries.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// finish holds ingestion, reads what is left, and swaps; again until that works:
//
//	a hold ends with                  then
//	a swap                            it is done
//	no swap, and nothing is wrong     a pause, what came meanwhile is read, and it is held again
//	a ledger that it can't reach      likewise, until that hasn't moved for too long
//	any other error                   that is returned
func (p *part) finish(ctx context.Context) error {
	pauses := betweenTries.Start()
	var still *retry.Backoff
	var at ledger.Position // of still
	for n := 1; ; n++ {
		missed, err := p.held(ctx)
		unreachable, stuck := errors.AsType[*ingest.UnreachableError](err)
		switch {
		case stuck:
			if still == nil || at != unreachable.Until {
				still, at = p.standstill().Start(), unreachable.Until
				p.notef("waiting for the consumers to go on: %v", err)
			}
			if err := still.Next(ctx); errors.Is(err, retry.ErrPatience) {
				return fmt.Errorf("the live ledger has been for %v at a position that a rebuild can't reach: %w; start a consumer, which goes on from there; or %s",
					p.standstill().Patience, unreachable, health.LedgerRemedy)
			} else if err != nil {
				return err
			}
		case missed == nil || err != nil:
			return err
		default:
			still = nil
			if n%5 == 0 {
				p.notef("ingestion was held %d times for up to %v, and there was no swap: %v; trying again", n, p.MaxHold, missed)
			}
			if err := pauses.Next(ctx); err != nil {
				return err
			}
		}
		if err := p.close(ctx); err != nil {
			return err
		}
		if p.compared != nil { // else each hold has more to ask for than the one before
			if err := p.compared.Update(ctx); err != nil {
				return err
			}
		}
	}
}

// errLate is why a hold is let go of.
var errLate = errors.New("the rest wasn't read by then")

// held is one hold. missed is why it was let go of without a swap, nil after one.
func (p *part) held(ctx context.Context) (missed, err error) {
	if err := p.alignBans(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := shadow.Retry(ctx, func() error { return p.Hold(ctx, p.MaxHold) }); err != nil {
		if errors.Is(err, shadow.ErrUnheld) {
			return err, nil
		}
		return nil, err
	}
	p.result.Holds++
	defer func() {
		if !p.result.Swapped {
			// Where this fails the hold lapses.
			_ = p.Release(context.WithoutCancel(ctx))
		}
	}()
	inTime, cancel := context.WithDeadline(ctx, began.Add(p.MaxHold))
	defer cancel()
	limits, err := p.limits(inTime, true)
	if err == nil {
		err = p.reads.To(inTime, p.shard, limits)
	}
	if err == nil && p.compared != nil {
		err = p.compared.Update(inTime)
	}
	if err == nil && p.DryRun {
		if err = p.plan(inTime); err == nil {
			err = inTime.Err() // what came after it may be of another moment
		}
	}
	_, stuck := errors.AsType[*ingest.UnreachableError](err)
	switch {
	case err != nil && !stuck && inTime.Err() != nil && ctx.Err() == nil:
		return errLate, nil
	case err != nil:
		return nil, err
	case p.DryRun:
		_ = p.Release(ctx) // what differs is known, and to sort it takes a while
		p.result.Held = time.Since(began)
		return nil, nil
	}
	return p.replace(ctx, began, p.Swap)
}

// replace calls Swap or TakeOver until the outcome is known.
func (p *part) replace(ctx context.Context, began time.Time, swap func(context.Context, shadow.Choice) (*shadow.Plan, error)) (missed, err error) {
	var plan *shadow.Plan
	// Told to stop, it still asks for a while: else nobody would know whether it had swapped.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.leaveTime(), cancel) })()
	err = shadow.Retry(asking, func() (err error) { plan, err = swap(asking, p.Choice); return err })
	p.result.Unsure = p.Unsure()
	_, moved := errors.AsType[*shadow.MovedError](err)
	switch {
	case err == nil:
		if p.result.At, p.result.Swapped = time.Now(), true; p.result.Holds > 0 {
			p.result.Held = time.Since(began)
		}
		p.result.Plan.Plan = plan
		return nil, nil
	case moved, errors.Is(err, shadow.ErrUnheld), errors.Is(err, shadow.ErrListed):
		return err, nil
	}
	return nil, err
}
