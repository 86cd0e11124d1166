package ranking

// Removes everything under a prefix.
//
// The order of removal makes a partial removal harmless. The ledgers of all shards go first, so that no
// piece in flight is written any more. The schemas go next, so that readers find no standings. The listings
// go last: while a shard has windows but no ledger, a consumer that starts under the prefix halts
// ("orphaned") instead of counting on top of the remains. Another drop continues where this one stopped.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// turn returns in which step a key is removed, from 0.
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

// ReportEvery is the longest time between two status lines of a worker.
const ReportEvery = time.Second

// Moves reports whether a ledger has moved, or a worker has reported, since the survey. If ReportEvery has
// passed since then, it also detects live workers that have nothing to count.
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

// Drop removes the keys that were found, 500 per call, and waits for pause after each call. Redis frees
// them in the background. Drop stops after the current call if the context ends. progress, which may be
// nil, receives the number of keys removed so far.
func (v *View) Drop(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) error {
	gone := 0
	// The keys of a step are gone before the next step starts.
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
