package rebuild

// The lock that admits one rebuild at a time, and the lease of a rebuild's keys in Redis.

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/retry"
)

// lock takes the locks of all shards. A lock may still be taken by this same run: an earlier attempt could
// not release it, or took it in a call whose reply was lost. Such a lock is not renewed, so lock waits for
// it to expire, once per shard, with all other locks released.
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

// locks takes the locks in order, up to the first that it cannot have, whose shard it returns. Two rebuilds
// that start at the same time meet at the first lock.
func (a *attempt) locks(ctx context.Context, first bool) (shard int, err error) {
	for _, p := range a.parts {
		take := func() (err error) {
			p.Rebuild, err = shadow.Lock(ctx, p.live, a.Owner, a.Lease)
			return err
		}
		if first { // nothing to lose yet, so errors are not retried
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
			return p.shard, p.live.OfShard(shadow.Full(err))
		}
	}
	return 0, nil
}

// unlock releases the locks that were taken, so that a rebuild that waits for one lock does not keep the
// others.
func (a *attempt) unlock(ctx context.Context) {
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.leaveTime())
	defer cancel()
	for _, p := range a.parts {
		if p.Rebuild != nil {
			_ = p.Close(going) // if it fails, the lock expires
			p.Rebuild = nil
		}
	}
}

// renew renews the leases until the context ends, and cancels the context if a lease is lost.
func (a *attempt) renew(ctx context.Context, cancel context.CancelCauseFunc) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(a.Lease / 4)
		defer tick.Stop()
		// A signal may cancel ctx before its end; the leases are still needed while the rebuild removes its
		// keys.
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
				return nil // a call that failed is repeated at the next tick, in time
			})
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return done
}

// removalPause is the pause between two calls that remove keys.
const removalPause = 5 * time.Millisecond

// leave releases the locks and removes the rebuild's keys. A signal stops the removal at once; a signal
// that came before leave leaves it leaveTime. Keys that are not removed expire.
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
