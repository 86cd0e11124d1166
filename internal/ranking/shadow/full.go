package shadow

// A rebuild that does not fit into Redis. A consumer waits for memory; a rebuild ends, since it uses the
// memory that consumers wait for.

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
)

// FullError reports that Redis refused a rebuild's write because of maxmemory.
type FullError struct {
	Used, Max int64 // bytes; 0 if Redis does not report them
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

// Full turns a refusal because of maxmemory into a *FullError, and returns any other error unchanged.
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

// Classify returns the verdict on an error of a rebuild. A full Redis ends the rebuild; other errors are
// classified as those of a store.
func Classify(err error) ledger.Verdict {
	if _, full := errors.AsType[*FullError](err); full {
		return ledger.Refuse
	}
	return ranking.Classify(err)
}
