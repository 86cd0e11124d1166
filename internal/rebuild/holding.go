package rebuild

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/retry"
)

// finish holds ingestion, reads what is left, and swaps; again until that works.
func (p *part) finish(ctx context.Context) error {
	for n := 1; ; n++ {
		done, err := p.held(ctx)
		if done || err != nil {
			return err
		}
		if n%5 == 0 {
			p.notef("ingestion was held %d times for up to %v, and the rest wasn't read by then: trying again", n, p.MaxHold)
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

// held is one hold. It reports false where it was let go of without a swap.
func (p *part) held(ctx context.Context) (done bool, err error) {
	began := time.Now()
	if err := shadow.Retry(ctx, func() error { return p.Hold(ctx, p.MaxHold) }); err != nil {
		if errors.Is(err, shadow.ErrUnheld) {
			return false, retry.Sleep(ctx, 100*time.Millisecond)
		}
		return false, err
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
	switch {
	case err != nil && inTime.Err() != nil && ctx.Err() == nil:
		return false, nil // not in time
	case err != nil:
		return false, err
	case p.DryRun:
		_ = p.Release(ctx) // what differs is known, and to sort it takes a while
		p.result.Held = time.Since(began)
		return true, nil
	}
	return p.swap(ctx, began)
}

// swap is tried until its outcome is known.
func (p *part) swap(ctx context.Context, began time.Time) (done bool, err error) {
	var plan *shadow.Plan
	// Told to stop, it still asks for a while: else nobody would know whether it had swapped.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(leaveTime, cancel) })()
	err = shadow.Retry(asking, func() (err error) { plan, err = p.Swap(asking, p.Choice); return err })
	p.result.Unsure = p.Unsure()
	_, moved := errors.AsType[*shadow.MovedError](err)
	switch {
	case err == nil:
		p.result.Held, p.result.At, p.result.Swapped = time.Since(began), time.Now(), true
		p.result.Plan.Plan = plan
		return true, nil
	case moved, errors.Is(err, shadow.ErrUnheld):
		return false, nil
	}
	return false, err
}
