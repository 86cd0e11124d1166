package redisconn

// A server executes one call at a time, and whoever else has a call for it waits. So of the
// calls that take long few are sent to it at once, of whichever of its shards they are: each
// is sent while the one before is executed, and the next waits here.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// CallsInTurn is how many calls that are made InTurn are on their way to a server at once.
const CallsInTurn = 2

// turns are a server's: a redis.Hook of its client.
type turns struct {
	free   chan struct{} // has room for as many calls as may be on their way
	flying atomic.Int32  // calls on their way
}

func newTurns() *turns { return &turns{free: make(chan struct{}, CallsInTurn)} }

type tookKey struct{}

// InTurn has a call wait for its turn at the server that it goes to, and sets took to the time
// that the call itself took: without the wait, and with no more than its share of the time in
// which the server had several such calls at hand. Pipelines and the calls of other clients
// don't wait.
func InTurn(ctx context.Context, took *time.Duration) context.Context {
	return context.WithValue(ctx, tookKey{}, took)
}

// DialHook leaves dialling as it is.
func (t *turns) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook leaves pipelines as they are.
func (t *turns) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook makes a call in its turn.
func (t *turns) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		took, ok := ctx.Value(tookKey{}).(*time.Duration)
		if !ok {
			return next(ctx, cmd)
		}
		if err := t.wait(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		began, flying := time.Now(), t.flying.Add(1)
		defer func() {
			*took = time.Since(began) / time.Duration(flying)
			t.flying.Add(-1)
			<-t.free
		}()
		// A new connection is greeted within the call, by commands that come here too: they
		// go in its turn.
		return next(context.WithValue(ctx, tookKey{}, nil), cmd)
	}
}

// wait waits for a turn until the call's deadline, which its context doesn't end by (see Within).
func (t *turns) wait(ctx context.Context) error {
	select {
	case t.free <- struct{}{}:
		return nil
	default:
	}
	var late <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case t.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for its turn at Redis: %w", context.Cause(ctx))
	case <-late:
		return fmt.Errorf("wait for its turn at Redis: %w", context.DeadlineExceeded)
	}
}
