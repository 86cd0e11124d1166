package rebuild

// The lock that makes a rebuild the only one, and the lease of all that it keeps in Redis.

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/retry"
)

// lock makes it the only rebuild, of all shards. What holds a lock may be of this run: a try
// before that couldn't let go of it, or a call whose answer never came. Nobody renews that, so
// it is waited for, once, with no other lock.
func (a *attempt) lock(ctx context.Context, run time.Time, first bool) error {
	waited := map[int]bool{}
	for {
		shard, err := a.locks(ctx, first)
		if err == nil {
			return nil
		}
		a.unlock(ctx)
		busy, ok := errors.AsType[*shadow.BusyError](err)
		if !ok || waited[shard] || busy.Owner != a.Owner || busy.Began.Before(run.Truncate(time.Millisecond)) {
			return err
		}
		waited[shard] = true
		a.Watch.notef("waiting for a lock of its own to expire, at %s", busy.Until.UTC().Format(time.RFC3339))
		if err := retry.Sleep(ctx, time.Until(busy.Until)+100*time.Millisecond); err != nil {
			return err
		}
	}
}

// locks takes the locks in order, up to one that can't be had: two rebuilds that begin at once
// meet at the first.
func (a *attempt) locks(ctx context.Context, first bool) (shard int, err error) {
	for _, p := range a.parts {
		take := func() (err error) {
			p.Rebuild, err = shadow.Lock(ctx, p.live, a.Owner, a.Lease)
			return err
		}
		if first { // and nothing is lost yet
			err = take()
		} else {
			var busy *shadow.BusyError
			err = shadow.Retry(ctx, func() error {
				if err := take(); !errors.As(err, &busy) {
					return err
				}
				return nil
			})
			if err == nil && busy != nil {
				err = busy
			}
		}
		if err != nil {
			p.Rebuild = nil
			return p.shard, p.named(shadow.Full(err))
		}
	}
	return 0, nil
}

// unlock lets go of the locks that were taken: one that can't be had is no reason to keep the
// others.
func (a *attempt) unlock(ctx context.Context) {
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.leaveTime())
	defer cancel()
	for _, p := range a.parts {
		if p.Rebuild != nil {
			_ = p.Close(going) // else it expires
			p.Rebuild = nil
		}
	}
}

// renew keeps the leases until the context ends, or ends it where there is nothing left
// that could be renewed.
func (a *attempt) renew(ctx context.Context, cancel context.CancelCauseFunc) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(a.Lease / 4)
		defer tick.Stop()
		// Until its end ctx may be cancelled by a signal, and what is left still be removed.
		going := context.WithoutCancel(ctx)
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			err := each(a.parts, func(p *part) error {
				err := p.Renew(going)
				if err != nil && (errors.Is(err, shadow.ErrLost) || ranking.Classify(err) != ledger.Retry) {
					return err
				}
				return nil // where it failed, the next is in time as well
			})
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return done
}

// removalPause is between two calls that remove.
const removalPause = 5 * time.Millisecond

// leave lets go of everything. A signal ends the removal at once, however much there is;
// one that came before leaves it some time. What isn't removed expires.
func (a *attempt) leave(ctx context.Context) {
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.leaveTime())
	removing := ctx
	if ctx.Err() != nil {
		removing = going
	}
	err := each(a.parts, func(p *part) error { return errors.Join(p.Release(going), p.Unlink(removing, removalPause)) })
	cancel()
	going, cancel = context.WithTimeout(context.WithoutCancel(ctx), a.leaveTime())
	defer cancel()
	err = errors.Join(err, each(a.parts, func(p *part) error { return p.Close(going) }))
	if err != nil {
		a.Watch.notef("what the rebuild leaves in Redis expires by itself, the shadow within %v and the mark of a swap within ten minutes: %v", a.Lease, err)
	}
}
