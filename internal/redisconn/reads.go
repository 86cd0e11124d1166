package redisconn

// Who only reads may ask again. A failover by Sentinels cuts off every connection to the
// old master, those too that are dialled while the Sentinels don't agree yet. The next
// connection goes to the new one.

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

// readsAgain is a hook that asks again where a connection was cut off.
type readsAgain struct{ policy retry.Policy }

// newReadsAgain leaves a call of this timeout half of it, and a server that closes every
// connection a second before it is named.
func newReadsAgain(timeout time.Duration) readsAgain {
	return readsAgain{retry.Policy{First: 20 * time.Millisecond, Longest: 200 * time.Millisecond, Patience: min(timeout/2, time.Second)}}
}

// DialHook leaves dialling as it is: whoever can't be reached is named at once.
func (readsAgain) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook asks again.
func (r readsAgain) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return r.policy.Do(ctx, cutOff, func() error {
			cmd.SetErr(nil)
			return next(ctx, cmd)
		})
	}
}

// ProcessPipelineHook asks again for all of a pipeline.
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

// cutOff reports whether a connection that had been made ended before its answer, or led to
// a master that isn't one any more. A server that can't be reached, or doesn't answer in
// time, is none of it.
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

// demotedError says that a server follows another one, though the Sentinels name it as
// the master.
type demotedError struct{ role string }

func (e *demotedError) Error() string {
	return fmt.Sprintf("the server that the Sentinels name as the master is a %s: a failover is under way", e.role)
}
