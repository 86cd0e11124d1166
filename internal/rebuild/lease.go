package rebuild

// The lock that makes a rebuild the only one, and the lease of all that it keeps in Redis.

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// lock makes it the only rebuild. What holds the lock may be of this run: a try before that
// couldn't let go of it, or a call whose answer never came. Nobody renews that, so it is
// waited for, once.
func (j *Job) lock(ctx context.Context, run time.Time, first bool) (r *ranking.Rebuild, err error) {
	for waited := false; ; waited = true {
		var busy *ranking.BusyError
		take := func() (err error) {
			if r, err = j.Live.Rebuild(ctx, j.Owner, j.Lease); errors.As(err, &busy) {
				return nil
			}
			return err
		}
		var err error
		if first { // and nothing is lost yet
			err = take()
		} else {
			err = ranking.Retry(ctx, take)
		}
		if err != nil || busy == nil {
			return r, err
		}
		if waited || busy.Owner != j.Owner || busy.Began.Before(run.Truncate(time.Millisecond)) {
			return nil, busy
		}
		j.Watch.notef("waiting for a lock of its own to expire, at %s", busy.Until.UTC().Format(time.RFC3339))
		if err := sleep(ctx, time.Until(busy.Until)+100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// renew keeps the lease until the context ends, or ends it where there is nothing left
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
			err := a.Renew(going)
			if err != nil && (errors.Is(err, ranking.ErrLost) || ranking.Meaning(err) != ledger.Retry) {
				cancel(err)
				return
			}
		}
	}()
	return done
}

// leaveTime is how long a rebuild that was told to stop asks whether it has swapped, and
// tries to remove what it leaves.
var leaveTime = 15 * time.Second // tests have less

// leave lets go of everything. A signal ends the removal at once, however much there is;
// one that came before leaves it some time. What isn't removed expires.
func (a *attempt) leave(ctx context.Context) {
	const pause = 5 * time.Millisecond
	going, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	removing := ctx
	if ctx.Err() != nil {
		removing = going
	}
	err := errors.Join(a.Release(going), a.Unlink(removing, pause))
	cancel()
	going, cancel = context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err = errors.Join(err, a.Close(going)); err != nil {
		a.Watch.notef("what the rebuild leaves in Redis expires by itself, the shadow within %v and the mark of a swap within ten minutes: %v", a.Lease, err)
	}
}
