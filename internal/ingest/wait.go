package ingest

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// wait is the growing, jittered wait between two tries. It never gives up: what
// ends it is the generation.
type wait struct{ *backoff.ExponentialBackOff }

func newWait() *wait {
	return &wait{backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(3*time.Second),
		backoff.WithMaxElapsedTime(0),
	)}
}

// next waits, longer than the last time.
func (w *wait) next(ctx context.Context) error { return sleep(ctx, w.NextBackOff()) }

// sleep waits for a time or for the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
