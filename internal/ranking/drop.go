package ranking

// Everything under a prefix, removed.
//
// The order of removal is what makes a half of it harmless. The ledgers go first, those of
// all shards: no piece that is on its way is written any more. Then the schemas: a reader is
// answered that there is nothing. The listings go last: while a shard has windows, and its
// ledger is gone, a consumer that starts under the prefix halts ("orphaned") in place of
// counting on top of what is left. Dropped again, it goes on where it ended.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// turn is when a key is removed.
func turn(key string) int {
	switch nameOf(key) {
	case "ledger":
		return 0
	case "schema":
		return 1
	case "windows":
		return 3
	}
	return 2
}

// ReportEvery is how often a worker writes its line, at the least.
const ReportEvery = time.Second

// Moves reports whether a ledger has moved, or a worker reported, since the survey. One
// that lives and has nothing to count is seen if that is longer ago than ReportEvery.
func (v *View) Moves(ctx context.Context, f *Found) (bool, error) {
	shards := make([]*Store, len(f.stood))
	for i, was := range f.stood {
		shards[i] = was.store
	}
	states, err := onEach(ctx, shards, (*Store).State)
	if err != nil {
		return false, err
	}
	for i, was := range f.stood {
		if !maps.Equal(states[i].Ledger, was.ledger) || !maps.Equal(states[i].Workers, was.workers) {
			return true, nil
		}
	}
	return false, nil
}

// Drop removes what was found, some hundred keys a call with a pause after each: Redis
// frees them in the background. It heeds the context's end after every call. progress,
// which may be nil, receives how many keys are gone.
func (v *View) Drop(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) error {
	gone := 0
	// What comes first is gone before what comes after is tried.
	for rest := f.keys; len(rest) > 0; {
		first, before := turn(rest[0]), gone
		n := slices.IndexFunc(rest, func(key string) bool { return turn(key) != first })
		if n < 0 {
			n = len(rest)
		}
		err := v.stores[0].Unlink(ctx, rest[:n], pause, func(n int) {
			if gone = before + n; progress != nil {
				progress(gone)
			}
		})
		if err == nil && len(rest) > n {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("drop %q: %d of %d keys are gone: %w", v.Prefix, gone, len(f.keys), err)
		}
		rest = rest[n:]
	}
	return nil
}
