package redisconn

// A client that is used for reads alone may repeat calls. A failover by Sentinels cuts every connection to
// the old master, also those opened while the Sentinels do not yet agree. The next connection reaches the
// new master.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/retry"
)

// readsAgain is a hook that repeats a call whose connection was cut.
type readsAgain struct {
	unhooked // a server that cannot be reached is reported at once

	policy retry.Policy
}

// newReadsAgain retries for at most half of timeout, so that half is left for the call, and for at most a
// second, so that a server that closes every connection is soon reported.
func newReadsAgain(timeout time.Duration) readsAgain {
	return readsAgain{policy: retry.Policy{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Patience: min(timeout/2, time.Second)}}
}

// ProcessHook repeats a call.
func (r readsAgain) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return r.policy.Do(ctx, cutOff, func() error {
			cmd.SetErr(nil)
			return next(ctx, cmd)
		})
	}
}

// ProcessPipelineHook repeats a whole pipeline.
func (r readsAgain) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return r.policy.Do(ctx, cutOff, func() error {
			for _, cmd := range cmds {
				cmd.SetErr(nil)
			}
			return next(ctx, cmds)
		})
	}
}

// cutOff reports whether an established connection ended before the reply, or led to a former master. A
// server that cannot be reached, or does not reply in time, is not included.
func cutOff(err error) bool {
	if _, demoted := errors.AsType[*demotedError](err); demoted {
		return true
	}
	if _, shaking := errors.AsType[*handshakeError](err); shaking || errors.Is(err, context.Canceled) {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ok && op.Op != "dial" && !op.Timeout()
}

// demotedError reports that a server is a replica although the Sentinels name it as the master.
type demotedError struct{ role string }

func (e *demotedError) Error() string {
	return fmt.Sprintf("the server that the Sentinels name as the master is a %s: a failover is under way", e.role)
}
