package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/retry"
)

// betweenTries is the pause between two holds, during which consumers run, or between two calls to Redis.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// finish holds ingestion, reads the rest, and swaps. It repeats this until the swap succeeds:
//
//	a hold ends with                  then
//	a swap                            finish returns
//	no swap, and no error             a pause, a round without a hold, and another hold
//	a ledger that it cannot reach     the same, until the ledger has not moved for too long
//	any other error                   finish returns the error
func (p *part) finish(ctx context.Context) error {
	pauses := betweenTries.Start()
	var still *retry.Backoff
	var at ledger.Position // the position that still refers to
	for n := 1; ; n++ {
		missed, err := p.held(ctx)
		unreachable, stuck := errors.AsType[*replay.UnreachableError](err)
		switch {
		case stuck:
			if still == nil || at != unreachable.Until {
				still, at = p.standstill().Start(), unreachable.Until
				p.notef("waiting for the consumers to go on: %v", err)
			}
			if err := still.Next(ctx); errors.Is(err, retry.ErrPatience) {
				return fmt.Errorf("for %v the live ledger has been at a position that a rebuild cannot reach: %w; start a consumer, which continues from there; or %s",
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
		if p.compared != nil { // otherwise each hold has more to compare than the one before
			if err := p.compared.Update(ctx); err != nil {
				return err
			}
		}
	}
}

// errLate is the reason that a hold ends without a swap.
var errLate = errors.New("the rest wasn't read by then")

// held runs one hold. missed is the reason that it ended without a swap; nil after a swap.
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
			// If this fails the hold lapses.
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
			err = inTime.Err() // after the hold's end the plan may mix two instants
		}
	}
	_, stuck := errors.AsType[*replay.UnreachableError](err)
	switch {
	case err != nil && !stuck && inTime.Err() != nil && ctx.Err() == nil:
		return errLate, nil
	case err != nil:
		return nil, err
	case p.DryRun:
		_ = p.Release(ctx) // the differences are known, and sorting them takes a while
		p.result.Held = time.Since(began)
		return nil, nil
	}
	return p.replace(ctx, began, p.Swap)
}

// replace calls Swap or TakeOver until the outcome is known.
func (p *part) replace(ctx context.Context, began time.Time, swap func(context.Context, shadow.Choice) (*shadow.Plan, error)) (missed, err error) {
	var plan *shadow.Plan
	// After ctx ends, the calls continue for a while, so that the outcome of a swap is known.
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
