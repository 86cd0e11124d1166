package shadow

// A rebuild that doesn't fit into Redis. A consumer waits for room; a rebuild takes the
// room that consumers wait for, and ends.

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
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
	where, boards := "", "The boards"
	if shard, ok := errors.AsType[*ranking.ShardError](e.Err); ok {
		where, boards = shard.Name()+": ", "Its boards"
	}
	return where + "Redis has no room for the rebuild: " + used + ". " + boards + " are as they were, and what was rebuilt is removed, so that consumers go on. " +
		"A rebuild needs about as much again as all boards: raise maxmemory (CONFIG SET maxmemory), or remove what isn't used any more (consumer drop --prefix …)"
}

func (e *FullError) Unwrap() error { return e.Err }

// Full is a *FullError of a refusal for maxmemory; any other error is as it was.
func Full(err error) error {
	if _, already := errors.AsType[*FullError](err); already || !redisconn.IsFull(err) {
		return err
	}
	full := &FullError{Err: err}
	if refused, ok := errors.AsType[*ledger.FullError](err); ok {
		full.Used, full.Max = refused.Used, refused.Max
	}
	return full
}

// Classify says what an error of a rebuild asks for: a full Redis ends it, all else is as
// of a store.
func Classify(err error) ledger.Verdict {
	if _, full := errors.AsType[*FullError](err); full {
		return ledger.Refuse
	}
	return ranking.Classify(err)
}
