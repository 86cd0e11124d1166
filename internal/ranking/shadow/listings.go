package shadow

// What the live boards and a rebuild's shadow list. Windows may be listed by the ten
// thousands, so the listings are read some hundred a call, before ingestion is held; under
// the hold it is enough to count them.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/standings/standings/internal/ranking"
)

// listings are both sides' listings, and which of their windows have the live keys that they
// have to have.
//
// They are right as long as both sides list as many. A shadow's listing only grows, and so
// does the live one: a board can't be dropped while a rebuild is under way, and what Retire
// takes away is over for two days; from when on that may be, they are read again. A listing
// is written once, but for which sets its window has, which is read in the call that swaps.
//
// A window that is opened while they are being read may be in them or not. It is opened by a
// piece, which moves the ledger: whoever reads the ledger, then the listings, and swaps only
// if the ledger hasn't moved, has missed none.
//
// A key may be lost without a trace, so windows for which that decides anything are looked at
// again.
type listings struct {
	names        []string // of both, sorted
	live, shadow map[string]string
	there        map[string]bool
	until        int64 // from when on Retire may take one away, Unix ms
}

// fits reports whether the listings are those of two sides, as they were at a time, Unix ms.
func (l *listings) fits(live, shadow *side, at int64) bool {
	return l != nil && len(l.live) == live.windows && len(l.shadow) == shadow.windows && at < l.until
}

// errFewer says that less is listed than was counted just before.
var errFewer = ranking.Faultf("less is listed than a moment ago")

// Prepare reads what both sides list, if that has changed since it was read last: what comes
// then under the hold takes less, unless more is listed.
func (r *Rebuild) Prepare(ctx context.Context) error {
	if _, err := r.takeBans(ctx); err != nil {
		return fmt.Errorf("prepare the rebuild of %q: %w", r.live.Prefix(), err)
	}
	live, shadow, now, err := r.both(ctx)
	if err == nil {
		_, _, err = r.listed(ctx, &live, &shadow, now)
	}
	if errors.Is(err, errFewer) {
		return nil // what is left out here is read again
	}
	if err != nil {
		return fmt.Errorf("prepare the rebuild of %q: %w", r.live.Prefix(), err)
	}
	return nil
}

// listed is what is listed, once both sides were seen, at a time. fresh: it was read after
// that. errFewer says that Redis has gone back meanwhile.
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
		if w, err := ranking.ParseListing(name, listing); err == nil { // else no window is planned
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
