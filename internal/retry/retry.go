// Package retry has all waits and retries of the program: a sleep that ends with its context, a growing wait
// between two tries, a loop that tries while errors are transient, and a limit for log lines. It knows nothing
// of Kafka and Redis: the caller decides which errors are transient.
//
//	a try ends with              then
//	nil                          return nil
//	a permanent error            return it at once
//	a transient error            wait, and try again
//	  patience is over           return the error
//	  the context has ended      return its cause
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Sleep waits for a duration, or until the context ends. It then returns the context's cause.
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

// Policy has the waits between tries. Each wait is half as long again as the one before. Its actual duration is
// random, between half and one and a half times that, so that processes that failed together do not retry
// together.
type Policy struct {
	First   time.Duration
	Longest time.Duration
	// Patience is the maximum duration of all tries, counted from Start and from every Reset; 0 for no limit.
	Patience time.Duration
}

// ForEver is the policy for tries that continue until their context ends.
var ForEver = Policy{First: 50 * time.Millisecond, Longest: 3 * time.Second}

// Do tries until it succeeds. It returns an error at once if passes reports false for it, the last error once
// patience is over, and the context's cause if the context ends while Do waits.
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

// Start starts a series of waits, for a loop that must decide more than Do can.
func (p Policy) Start() *Backoff {
	return &Backoff{backoff.NewExponentialBackOff(backoff.WithInitialInterval(p.First),
		backoff.WithMaxInterval(p.Longest), backoff.WithMaxElapsedTime(p.Patience))}
}

// Backoff is a series of growing waits. It is not safe for concurrent use.
type Backoff struct{ policy *backoff.ExponentialBackOff }

// ErrPatience reports that tries have lasted as long as the policy allows.
var ErrPatience = errors.New("out of patience")

// Next waits, longer than the last time. It returns the context's cause if the context ends, and ErrPatience,
// without a wait, if the next try would be too late.
func (b *Backoff) Next(ctx context.Context) error {
	pause, more := b.Pause()
	if !more {
		return ErrPatience
	}
	return Sleep(ctx, pause)
}

// Pause returns how long Next would wait, for callers that wait themselves. It reports false if patience is
// over.
func (b *Backoff) Pause() (pause time.Duration, more bool) {
	pause = b.policy.NextBackOff()
	return pause, pause != backoff.Stop
}

// Reset starts again with the first wait, and with the full patience.
func (b *Backoff) Reset() { b.policy.Reset() }
