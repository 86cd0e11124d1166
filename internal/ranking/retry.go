package ranking

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/standings/standings/internal/ledger"
)

// Retry calls do until it succeeds, or fails with what doesn't pass; a rebuild waits out
// everything else, as a failover. The context's end ends it with its cause.
func Retry(ctx context.Context, do func() error) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := do()
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		if err := wait(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// passes reports whether the same call may do better. What a rebuild was answered is no
// error of Redis's own, and stays: that ledgers differ, or what isn't allowed. Nor is room
// waited for: what takes it is the rebuild itself.
func passes(err error) bool {
	_, moved := errors.AsType[*MovedError](err)
	_, refused := errors.AsType[*RefusedError](err)
	if moved || refused || errors.Is(err, ErrLost) || errors.Is(err, ErrUnheld) || errors.Is(err, errSwapped) || IsFull(err) {
		return false
	}
	return Meaning(err) == ledger.Retry
}
