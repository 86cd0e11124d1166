package lease

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// held is the lease while this process has it.
type held struct {
	*Lease
	token int64
	from  time.Time // before the call that took or renewed it last
}

// safe is for how long the work may go on without a renewal. The last sixth is for it to stop.
func (h *held) safe() time.Duration { return time.Until(h.from.Add(h.Length * 5 / 6)) }

// hold has do work while the lease holds, and returns once it has ended, with what it ended by:
// do's error, or the reason for which its context ended.
func (h *held) hold(ctx context.Context, do func(context.Context, int64) error) error {
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// By a timer of its own: a call to Redis may hang for longer than it was given.
	expiry := time.AfterFunc(h.safe(), func() { stop(ErrExpired) })
	defer expiry.Stop()
	if h.Leading != nil {
		h.Leading(h.token)
		defer h.Leading(0)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = do(leading, h.token)
	}()
	stop(h.keep(leading, expiry, ended)) // where the context has ended by itself, that changes nothing
	<-ended
	if cause := context.Cause(leading); !errors.Is(cause, errEnded) && !errors.Is(failed, cause) {
		return errors.Join(cause, failed)
	}
	return failed
}

// keep renews the lease until the context ends, the work has ended (errEnded), or somebody else
// leads.
func (h *held) keep(ctx context.Context, expiry *time.Timer, ended <-chan struct{}) error {
	due := func() time.Duration { return time.Until(h.from.Add(h.Length / 3)) }
	next := time.NewTimer(due())
	defer next.Stop()
	for {
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		}
		from := time.Now()
		err := h.renew(ctx)
		switch {
		case errors.Is(err, ranking.ErrNotLeader):
			return err
		case err != nil:
			next.Reset(h.Length / 20) // it may pass before the expiry
		case !expiry.Stop():
			return ErrExpired // the work is stopped already, whatever the answer is
		default:
			h.from = from
			expiry.Reset(h.safe())
			next.Reset(due())
		}
	}
}

func (h *held) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.safe(), 0))
	defer cancel()
	return h.Redis.KeepLead(ctx, h.Owner, h.token, h.Length)
}
