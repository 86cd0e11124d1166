package ranking

// A rebuild that doesn't fit into Redis. A consumer waits for room; a rebuild takes the
// room that consumers wait for, and ends.

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// FullError says that Redis refuses a rebuild what it would write, for its maxmemory.
type FullError struct {
	Used, Max int64 // bytes; 0 where Redis doesn't tell
	Err       error
}

func (e *FullError) Error() string {
	used := "its maxmemory is reached"
	if e.Max > 0 {
		used = fmt.Sprintf("%d MiB of its maxmemory of %d MiB are used", e.Used>>20, e.Max>>20)
	}
	return "Redis has no room for the rebuild: " + used + ". The boards are as they were, and what was rebuilt is removed, so that consumers go on. " +
		"A rebuild needs about as much again as all boards: raise maxmemory (CONFIG SET maxmemory), or remove what isn't used any more (consumer drop --prefix …)"
}

func (e *FullError) Unwrap() error { return e.Err }

// IsFull reports whether Redis refused a call for its maxmemory.
func IsFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && says(cause(reply.Error()), "OOM")
}

// Full is a *FullError with how much is used, where IsFull; any other error is as it was.
func (s *Store) Full(ctx context.Context, err error) error {
	if !IsFull(err) {
		return err
	}
	full := &FullError{Err: err}
	full.Used, full.Max = s.room(ctx)
	return full
}
