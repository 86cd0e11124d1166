package shadow

import (
	"context"
	"fmt"
)

// nameMembers adds what members are called by the events that the rebuild has read to the names of
// the live boards, once those are swapped. A name counts by the time of its event, so whatever is
// named meanwhile, both come to the same; and whoever is erased meanwhile stays so.
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
