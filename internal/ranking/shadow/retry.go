package shadow

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/retry"
)

// betweenTries is how long a rebuild waits before it asks Redis once more.
var betweenTries = retry.Policy{First: 20 * time.Millisecond, Longest: time.Second}

// Retry calls do until it succeeds, or fails with what doesn't pass; a rebuild waits out
// everything else, as a failover. The context's end ends it, with the error of the call that
// it has ended, or else with its cause.
func Retry(ctx context.Context, do func() error) error {
	return betweenTries.Do(ctx, func(err error) bool { return ctx.Err() == nil && passes(err) }, do)
}

// passes reports whether the same call may do better. What a rebuild was answered is no
// error of Redis's own, and stays: that ledgers differ, or what isn't allowed. Nor is room
// waited for: what takes it is the rebuild itself.
func passes(err error) bool {
	_, moved := errors.AsType[*MovedError](err)
	_, refused := errors.AsType[*RefusedError](err)
	if moved || refused || errors.Is(err, ErrLost) || errors.Is(err, ErrUnheld) || errors.Is(err, ErrKeeps) || errors.Is(err, ErrListed) || errors.Is(err, errSwapped) || redisconn.IsFull(err) {
		return false
	}
	return Classify(err) == ledger.Retry
}
