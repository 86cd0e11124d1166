package shadow

import (
	"context"
	"fmt"
)

// nameMembers merges the names that the rebuild has read from events into the names of the live boards,
// after a swap. The name with the latest event time wins, so consumers may add names concurrently with the
// same result. A member that is erased meanwhile stays erased.
func (r *Rebuild) nameMembers(ctx context.Context) error {
	r.mu.Lock()
	swapped := r.swapped
	r.mu.Unlock()
	if !swapped {
		return nil
	}
	err := r.shadow.EachName(ctx, func(entries []string) error { return r.live.MergeNames(ctx, entries) })
	if err != nil {
		return fmt.Errorf("take over what members are called; rebuild again, or they are called nothing until their next event: %w", err)
	}
	return nil
}
