// Package diff compares the standings under two prefixes: points, and the times at which they were reached,
// to the coarser of the two ticks. The two prefixes may have different layouts and numbers of shards.
//
//	listings of all shards ─▶ windows ─▶ every member of either side, with both scores
//	                                      │ some differ, and the ledgers moved: read them again
//	                                      ▼
//	                                     the members that differ, and whether that is exact
package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/inventory"
)

// Prefixes are the two prefixes to compare. A is the first.
type Prefixes struct {
	A, B *inventory.View
	// Boards, Periods and Windows are the names to compare; an empty list means all.
	Boards, Periods, Windows []string
	// Most limits the number of differing members to keep, over all windows.
	Most int
	// Pause is the wait between two calls. Again is the wait before differing members are read again.
	Pause, Again time.Duration
}

// Window is the comparison of a window under two prefixes.
type Window struct {
	ledger.Window // as A lists it, if it does

	// Why is the reason why the window couldn't be compared; empty if it was compared.
	Why string
	// Members are the members that differ, sorted.
	Members []ranking.Difference
	// More reports that more members differ than were kept.
	More bool
	// Exact reports that all ledgers were at the same positions before and after. Otherwise a difference
	// may be due to events that one side hasn't counted yet.
	Exact bool

	fields codec.Fields
	a, b   codec.TupleLayout
}

// Differs reports whether the window may differ between the two sides.
func (w *Window) Differs() bool { return w.Why != "" || w.More || len(w.Members) > 0 }

// Run compares every window that either side lists, sorted by board, period and start. It leaves out a
// window whose retention is over on either side.
func (d *Prefixes) Run(ctx context.Context) ([]Window, error) {
	a, err := listed(ctx, d.A)
	if err != nil {
		return nil, err
	}
	b, err := listed(ctx, d.B)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var all []Window
	for name := range names {
		if w, ok := d.window(a[name], b[name]); ok {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(x, y Window) int { return x.Compare(y.Window) })
	kept := 0
	for i := range all {
		if all[i].Why != "" {
			continue
		}
		if err := d.compare(ctx, &all[i], d.Most-kept); err != nil {
			return nil, fmt.Errorf("compare %s: %w", all[i].Listing(), err)
		}
		kept += len(all[i].Members)
	}
	return all, nil
}

// listing is a window as the shards of a prefix list it.
type listing struct {
	ledger.Window

	rule string
	over bool // by the clock of a shard that lists it
	cut  bool // the shards have different listings
}

// listed returns the listings of a prefix, by name.
func listed(ctx context.Context, v *inventory.View) (map[string]*listing, error) {
	states, err := v.States(ctx)
	if err != nil {
		return nil, err
	}
	listings, err := v.Listings(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*listing{}
	for i, texts := range listings {
		for name, text := range texts {
			l, err := ranking.ParseListing(name, text)
			if err != nil {
				return nil, err
			}
			one := &listing{Window: l.Window, rule: l.Rule}
			if before := all[name]; before != nil {
				one.over, one.cut = before.over, before.cut || before.Window != l.Window || before.rule != l.Rule
			}
			one.over = one.over || l.Expires <= states[i].Now.UnixMilli()
			all[name] = one
		}
	}
	return all, nil
}

// window returns a window to be compared; a or b is nil if that side doesn't list it. ok is false if the
// window is over or wasn't requested.
func (d *Prefixes) window(a, b *listing) (w Window, ok bool) {
	one := a
	if a == nil {
		one = b
	}
	w.Window = one.Window
	requested := func(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	if a != nil && a.over || b != nil && b.over ||
		!requested(d.Boards, w.Board) || !requested(d.Periods, w.Period) || !requested(d.Windows, w.Name) {
		return w, false
	}
	both := a != nil && b != nil
	var keptA, keptB bool
	var err error
	if w.a, w.fields, keptA, err = d.A.LayoutOf(w.Period, one.rule); err == nil {
		w.b, _, keptB, err = d.B.LayoutOf(w.Period, one.rule)
	}
	switch {
	case err != nil:
		w.Why = err.Error()
	case !keptA:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.A.Prefix)
	case !keptB:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.B.Prefix)
	case one.cut || both && (b.cut || a.Window != b.Window) || !both && !d.A.SameWindows(d.B, w.Period):
		w.Why = "it is cut otherwise under the two: by another time zone, week start, or time zone data"
	case both && a.rule != b.rule:
		w.Why = fmt.Sprintf("its board has another rule under the two: %s and %s", ranking.RuleName(a.rule), ranking.RuleName(b.rule))
	}
	return w, true
}
