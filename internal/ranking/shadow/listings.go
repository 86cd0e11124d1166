package shadow

// The listings of the live boards and of a rebuild's shadow. There may be tens of thousands of windows, so
// the listings are read a few hundred per call, before ingestion is held. Under the hold it suffices to
// count them.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/standings/standings/internal/ranking"
)

// listings holds the listings of both sides, and which of their windows have all required live keys.
//
// They are valid as long as both sides still list the same number of windows. The shadow's listing only
// grows. So does the live one: a board cannot be dropped during a rebuild, and Retire removes a window only
// two days after it expires; from the earliest such time on, the listings are read again. An entry is written
// once, except for the part that names the window's sets, which swap.lua reads in its own call.
//
// A window that is opened while the listings are being read may be missing from them. The piece that opens
// it moves the ledger. So a caller that reads the ledger, then the listings, and swaps only if the ledger
// has not moved, has missed no window.
//
// Redis may lose a key without a trace, so the keys of windows whose action depends on them are checked
// again.
type listings struct {
	names        []string // of both sides, sorted
	live, shadow map[string]string
	there        map[string]bool
	until        int64 // the earliest time at which Retire may remove a window, Unix ms
}

// fits reports whether the listings are those of the two sides at the given time, Unix ms.
func (l *listings) fits(live, shadow *side, at int64) bool {
	return l != nil && len(l.live) == live.windows && len(l.shadow) == shadow.windows && at < l.until
}

// errFewer reports that fewer windows are listed than were counted just before.
var errFewer = ranking.Faultf("less is listed than a moment ago")

// Prepare reads both listings if they have changed since they were last read. The plan made later under the
// hold is then faster, unless more windows are listed by that time.
func (r *Rebuild) Prepare(ctx context.Context) error {
	if _, err := r.takeBans(ctx); err != nil {
		return fmt.Errorf("prepare the rebuild of %q: %w", r.live.Prefix(), err)
	}
	live, shadow, now, err := r.both(ctx)
	if err == nil {
		_, _, err = r.listed(ctx, &live, &shadow, now)
	}
	if errors.Is(err, errFewer) {
		return nil // the next plan reads the listings again
	}
	if err != nil {
		return fmt.Errorf("prepare the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// listed returns the listings for two sides that were read at now, Unix ms. fresh reports that they were
// read after that time. errFewer reports that Redis was rolled back meanwhile.
func (r *Rebuild) listed(ctx context.Context, live, shadow *side, now int64) (l *listings, fresh bool, err error) {
	r.mu.Lock()
	l = r.read
	r.mu.Unlock()
	if l.fits(live, shadow, now) {
		return l, false, nil
	}
	l = &listings{until: math.MaxInt64}
	if l.live, err = r.live.Listings(ctx); err != nil {
		return nil, false, err
	}
	if l.shadow, err = r.shadow.Listings(ctx); err != nil {
		return nil, false, err
	}
	for name, listing := range l.live {
		if w, err := ranking.ParseListing(name, listing); err == nil { // otherwise no window is planned
			l.until = min(l.until, w.Expires+ranking.RetireAfter.Milliseconds())
		}
	}
	if len(l.shadow) < shadow.windows || len(l.live) < live.windows && now < l.until {
		return nil, false, errFewer
	}
	all := maps.Clone(l.live)
	maps.Copy(all, l.shadow)
	l.names = slices.Sorted(maps.Keys(all))
	if l.there, err = r.there(ctx, l.names); err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = l
	return l, true, nil
}
