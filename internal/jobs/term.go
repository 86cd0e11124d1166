package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// term is the lease while this process has it.
type term struct {
	*Leader
	token int64
	from  time.Time // before the call that took or renewed the lease last
}

// safe is how long the jobs may run without a renewal. The last sixth of the lease is for them to stop.
func (t *term) safe() time.Duration { return time.Until(t.from.Add(t.Length * 5 / 6)) }

// hold runs the jobs until the lease is lost or the context ends, and returns the cause once all have returned.
func (t *term) hold(ctx context.Context) error {
	leading, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	// The expiry has its own timer, because a renewal may hang for longer than its deadline.
	expiry := time.AfterFunc(t.safe(), func() { lose(ErrExpired) })
	defer expiry.Stop()
	if t.Leading != nil {
		t.Leading(true)
		defer t.Leading(false)
	}
	var running sync.WaitGroup
	for _, job := range t.Jobs(Term{Owner: t.Owner, Token: t.token}) {
		running.Go(func() {
			if err := job.repeat(leading, t.Log, t.Report); err != nil {
				lose(err)
			}
		})
	}
	lose(t.keep(leading, expiry)) // no effect if the context has ended for another cause
	running.Wait()
	return context.Cause(leading)
}

// keep renews the lease until the context ends or another process has the lease.
func (t *term) keep(ctx context.Context, expiry *time.Timer) error {
	due := func() time.Duration { return time.Until(t.from.Add(t.Length / 3)) }
	next := time.NewTimer(due())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		}
		from := time.Now()
		err := t.renew(ctx)
		switch {
		case errors.Is(err, ranking.ErrNotLeader):
			return err
		case err != nil:
			next.Reset(t.Length / 20) // the next try may succeed before the expiry
		case !expiry.Stop():
			return ErrExpired // the jobs have been stopped, although the lease is renewed
		default:
			t.from = from
			expiry.Reset(t.safe())
			next.Reset(due())
		}
	}
}

func (t *term) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(t.safe(), 0))
	defer cancel()
	return t.Redis.KeepLead(ctx, t.Owner, t.token, t.Length)
}
