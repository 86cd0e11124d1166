package redisconn

// A server executes one call at a time, and other clients wait meanwhile. So only a few long calls are in
// flight to a server at the same time, for all its shards together: one is sent while the previous one is
// executed, and the next ones wait in this process.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// CallsInTurn is the number of calls made with InTurn that are in flight to a server at the same time.
const CallsInTurn = 2

// turns limits the calls to one server. It is a redis.Hook of that server's client.
type turns struct {
	unhooked // pipelines do not wait

	free   chan struct{} // its capacity is the number of calls that may be in flight
	flying atomic.Int32  // number of calls in flight
}

func newTurns() *turns { return &turns{free: make(chan struct{}, CallsInTurn)} }

type tookKey struct{}

// InTurn returns a context whose calls wait for their turn at their server. It sets took to the duration of
// the call without the wait, divided by the number of such calls in flight, so that the time of concurrent
// calls counts once. Pipelines and calls of other clients do not wait.
func InTurn(ctx context.Context, took *time.Duration) context.Context {
	return context.WithValue(ctx, tookKey{}, took)
}

// ProcessHook waits for the call's turn, and makes the call.
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
		// A new connection is checked within the call, by commands that also pass this hook. They must not
		// wait for a turn of their own.
		return next(context.WithValue(ctx, tookKey{}, nil), cmd)
	}
}

// wait waits for a turn until the call's deadline. The context does not end at this deadline (see Within).
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
