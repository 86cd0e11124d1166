// Package retry is how everything here waits and tries again: one sleep that ends with
// its context, one growing wait between two tries, one loop that tries while an error may
// pass, and one limit for a log line that would come with every try. It knows nothing of
// Kafka and Redis: whoever calls it says which errors pass.
//
//	a try ends with              then
//	nil                          it is done
//	an error that won't pass     that is returned, at once
//	an error that may pass       wait, and try again
//	  patience is over           the error is returned
//	  the context has ended      its cause is returned
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Sleep waits for a time, or until the context ends: then it returns the context's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Policy is how long to wait between two tries. The waits grow by half each time, and each
// is taken at random from half to one and a half times its length: processes that failed
// together don't try again together.
type Policy struct {
	First   time.Duration
	Longest time.Duration
	// Patience is how long tries go on in all, counted from Start and from every Reset; 0
	// is for ever.
	Patience time.Duration
}

// ForEver is the wait between two tries of what goes on until its context ends.
var ForEver = Policy{First: 50 * time.Millisecond, Longest: 3 * time.Second}

// Do tries until it succeeds. It returns an error for which passes reports false at once,
// the last one once patience is over, and the context's cause if that ends while it waits.
func (p Policy) Do(ctx context.Context, passes func(error) bool, try func() error) error {
	b := p.Start()
	for {
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		pause, more := b.Pause()
		if !more {
			return err
		}
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Start begins a row of waits, for a loop that has more to decide than Do has.
func (p Policy) Start() *Backoff {
	return &Backoff{backoff.NewExponentialBackOff(backoff.WithInitialInterval(p.First),
		backoff.WithMaxInterval(p.Longest), backoff.WithMaxElapsedTime(p.Patience))}
}

// Backoff is the wait between two tries, longer from one to the next. It isn't safe for
// concurrent use.
type Backoff struct{ policy *backoff.ExponentialBackOff }

// ErrPatience says that tries have gone on for as long as the policy allows.
var ErrPatience = errors.New("out of patience")

// Next waits, longer than the last time. It returns the context's cause once that ends,
// and ErrPatience, without a wait, if the next try would come too late.
func (b *Backoff) Next(ctx context.Context) error {
	pause, more := b.Pause()
	if !more {
		return ErrPatience
	}
	return Sleep(ctx, pause)
}

// Pause is how long Next would wait, for whoever waits otherwise. It reports false if
// patience is over.
func (b *Backoff) Pause() (pause time.Duration, more bool) {
	pause = b.policy.NextBackOff()
	return pause, pause != backoff.Stop
}

// Reset begins anew: with the first wait, and with all of the patience.
func (b *Backoff) Reset() { b.policy.Reset() }
