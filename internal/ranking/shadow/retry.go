package shadow

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/retry"
)

// betweenTries is the back-off of a rebuild between calls to Redis.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// Retry calls do until it succeeds or fails with a permanent error; a failover, for example, is transient.
// When ctx ends, Retry returns the error of the call that ctx interrupted, or else the context's cause.
func Retry(ctx context.Context, do func() error) error {
	return betweenTries.Do(ctx, func(err error) bool { return ctx.Err() == nil && passes(err) }, do)
}

// passes reports whether the same call may succeed later. Results of a rebuild's scripts, such as different
// ledgers or a refusal, are permanent. So is a full Redis, since the rebuild itself uses the memory.
func passes(err error) bool {
	_, moved := errors.AsType[*MovedError](err)
	_, refused := errors.AsType[*RefusedError](err)
	if moved || refused || errors.Is(err, ErrLost) || errors.Is(err, ErrUnheld) || errors.Is(err, ErrKeeps) || errors.Is(err, ErrListed) || errors.Is(err, errSwapped) || redisconn.IsFull(err) {
		return false
	}
	return Classify(err) == ledger.Retry
}
