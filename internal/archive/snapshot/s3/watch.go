package s3

import (
	"context"
	"time"
)

// watched is a context that ends once the service has been waited for, and nothing has moved, for stallTime:
// a connection that was cut without a word would be waited for by the kernel's time, a quarter of an hour.
// How long the other end takes, which is Redis, isn't counted.
type watched struct {
	context.Context //nolint:containedctx // it is one transfer's

	stop  context.CancelCauseFunc
	timer *time.Timer
}

func watch(ctx context.Context) *watched {
	ctx, stop := context.WithCancelCause(ctx)
	return &watched{ctx, stop, time.AfterFunc(stallTime, func() { stop(errStalled) })}
}

// waits is called when the service is waited for, anew since something moved.
func (w *watched) waits() { w.timer.Reset(stallTime) }

// rests is called when it isn't waited for.
func (w *watched) rests() { w.timer.Stop() }

func (w *watched) end() {
	w.timer.Stop()
	w.stop(nil)
}

// cause is an error, or why the context ended.
func (w *watched) cause(err error) error {
	if w.Err() != nil {
		return context.Cause(w)
	}
	return err
}
