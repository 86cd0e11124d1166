package ranking

// The standings under two prefixes, compared by what they say: points, and when they were
// reached, to the coarser tick of the two.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

// Diff is two prefixes being compared. A is the first.
type Diff struct {
	A, B *View
	// Boards, Periods and Windows are those to be compared, by their names; none is all.
	Boards, Periods, Windows []string
	// Bound is how many members that differ are looked at again at most, a window.
	Bound int
	// Pause is waited for between two calls.
	Pause time.Duration
	// Each is told of every standing that differs, window by window; nil is nobody.
	Each func(Difference) error
}

// WindowDiff is a window in which standings under two prefixes were compared.
type WindowDiff struct {
	Board, Period, Window string
	Start, End            int64 // Unix ms, of A where A lists it
	InA, InB              bool  // it is listed
	// Why it couldn't be compared; empty where it was.
	Why string

	OnlyA, OnlyB int // members that one side has alone
	Points       int // members with other points
	Times        int // members with the same points, reached at another time
	Foreign      int // members with a score that none of our layouts writes
	// Exact: both ledgers stood at the same positions all the while, so that whatever
	// differs does. Else traffic may account for it, or that one side is behind.
	Exact bool
	// More differ than the bound: the numbers are too low.
	More bool
	// IncompleteA and IncompleteB are partitions of which events before a time after the
	// window's start aren't in.
	IncompleteA, IncompleteB []string
}

// Differs reports whether a window isn't the same on both sides.
func (w *WindowDiff) Differs() bool {
	return w.Why != "" || w.More || w.OnlyA+w.OnlyB+w.Points+w.Times+w.Foreign > 0
}

// Positions are how far both ledgers are, by partition.
func (d *Diff) Positions(ctx context.Context) (a, b map[string]string, err error) {
	sa, err := d.A.store.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	sb, err := d.B.store.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	return sa.Ledger, sb.Ledger, nil
}

// Run compares every window that either side lists, by board, period and start. One whose
// retention is over on either side is left out. *UnmatchedError says that none is of a
// board, a period or a name that is to be compared.
func (d *Diff) Run(ctx context.Context) ([]WindowDiff, error) {
	stA, err := d.A.store.State(ctx)
	if err != nil {
		return nil, err
	}
	stB, err := d.B.store.State(ctx)
	if err != nil {
		return nil, err
	}
	a, err := d.A.listed(ctx)
	if err != nil {
		return nil, err
	}
	b, err := d.B.listed(ctx)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var all []WindowDiff
	for name := range names {
		w, ok, err := d.window(name, a[name], b[name], stA, stB)
		if err != nil && d.asks(&w) {
			return nil, err
		}
		if ok {
			all = append(all, w)
		}
	}
	if all, err = d.choose(all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y WindowDiff) int {
		return comparePlanned(Planned{Board: x.Board, Period: x.Period, Name: x.Window, Start: x.Start},
			Planned{Board: y.Board, Period: y.Period, Name: y.Window, Start: y.Start})
	})
	for i := range all {
		if all[i].Why != "" {
			continue
		}
		if err := d.compare(ctx, &all[i]); err != nil {
			return nil, fmt.Errorf("compare %s:%s:%s: %w", all[i].Board, all[i].Period, all[i].Window, err)
		}
	}
	return all, nil
}

// listed is the whole listing.
func (v *View) listed(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := v.store.steady(ctx, func() error {
		for page, err := range v.store.listings(ctx, 0) {
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				all[page[i]] = page[i+1]
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the windows listed under %q: %w", v.Prefix, asRights(err, "", v.Prefix))
	}
	return all, nil
}

// window is what is known of a window beforehand; ok is false for one that is over.
func (d *Diff) window(name, a, b string, stA, stB ledger.State) (w WindowDiff, ok bool, err error) {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) != 3 {
		return w, false, faultf("a listing has %q, which is no window", clip(name))
	}
	w = WindowDiff{Board: parts[0], Period: parts[1], Window: parts[2], InA: a != "", InB: b != ""}
	var bound [2][2]int64
	for i, side := range []struct {
		listing string
		now     time.Time
	}{{a, stA.Now}, {b, stB.Now}} {
		if side.listing == "" {
			continue
		}
		start, end, expires, err := bounds(side.listing)
		if err != nil {
			return w, false, fmt.Errorf("the listing of %s: %w", name, err)
		}
		if expires <= side.now.UnixMilli() {
			return w, false, nil
		}
		bound[i] = [2]int64{start, end}
	}
	at := bound[0]
	if !w.InA {
		at = bound[1]
	}
	w.Start, w.End = at[0], at[1]
	_, keptA := d.A.layouts[w.Period]
	_, keptB := d.B.layouts[w.Period]
	switch {
	case !keptA:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.A.Prefix)
	case !keptB:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.B.Prefix)
	case w.InA && w.InB && bound[0] != bound[1]:
		w.Why = "it is cut otherwise under the two: by another time zone, week start, or time zone data"
	case w.InA != w.InB && d.otherCalendar(w.Period):
		w.Why = "the two cut their windows otherwise: by another time zone or week start"
	}
	if w.IncompleteA, err = incomplete(stA.Origins, w.Start); err != nil {
		return w, false, err
	}
	if w.IncompleteB, err = incomplete(stB.Origins, w.Start); err != nil {
		return w, false, err
	}
	return w, true, nil
}

func (d *Diff) otherCalendar(period string) bool {
	return d.A.Zone != d.B.Zone || period == "weekly" && d.A.WeekStart != d.B.WeekStart
}

const (
	looksAgain = 5 // at members that differ, while traffic goes on
	lookPause  = 300 * time.Millisecond
)

// compare reads a window of both sides. What differs is asked for again, both sides in one
// call: a member whose events come to one side a moment later than to the other then
// agrees. What was read is exact if both ledgers stood at the same positions before and
// after, since no score changes without them.
func (d *Diff) compare(ctx context.Context, w *WindowDiff) error {
	la, lb := d.A.layouts[w.Period], d.B.layouts[w.Period]
	name := ledger.Window{Board: w.Board, Period: w.Period, Name: w.Window}.Listing()
	c := comparison{store: d.A.store, a: d.A.store.keys.listed(name), b: d.B.store.keys.listed(name), all: la != lb}
	before, err := d.same(ctx)
	if err != nil {
		return err
	}
	differ := map[string]Difference{}
	note := func(member, a, b string) error {
		ra, rb, err := d.rows(w, a, b)
		if err != nil {
			return err
		}
		if kindOf(ra, rb, la, lb, w.End) == 0 {
			return nil
		}
		if len(differ) >= d.Bound {
			w.More = true
			return nil
		}
		differ[member] = Difference{Board: w.Board, Period: w.Period, Window: w.Window, Member: member, A: ra, B: rb}
		return nil
	}
	if err := c.scan(ctx, d.Pause, note); err != nil {
		return err
	}
	after, err := d.same(ctx)
	if err != nil {
		return err
	}
	w.Exact = before != "" && before == after
	for look := 0; !w.Exact && len(differ) > 0 && look < looksAgain; look++ {
		if err := wait(ctx, lookPause); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(differ))
		clear(differ)
		if err := c.members(ctx, names, note); err != nil {
			return err
		}
	}
	return d.report(w, differ, la, lb)
}

func (d *Diff) report(w *WindowDiff, differ map[string]Difference, la, lb codec.Layout) error {
	for _, member := range slices.Sorted(maps.Keys(differ)) {
		one := differ[member]
		switch kindOf(one.A, one.B, la, lb, w.End) {
		case onlyA:
			w.OnlyA++
		case onlyB:
			w.OnlyB++
		case foreign:
			w.Foreign++
		case otherPoints:
			w.Points++
		default:
			w.Times++
		}
		if d.Each != nil {
			if err := d.Each(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *Diff) rows(w *WindowDiff, a, b string) (ra, rb Row, err error) {
	if ra, err = row(d.A.layouts[w.Period], w.Start, w.End, a); err != nil {
		return ra, rb, err
	}
	rb, err = row(d.B.layouts[w.Period], w.Start, w.End, b)
	return ra, rb, err
}

// same is the text of both ledgers, if they stand at the same positions; else empty.
func (d *Diff) same(ctx context.Context) (string, error) {
	a, b, err := d.Positions(ctx)
	if err != nil || !maps.Equal(a, b) {
		return "", err
	}
	var text strings.Builder
	for _, field := range slices.Sorted(maps.Keys(a)) {
		text.WriteString(strconv.Quote(field) + strconv.Quote(a[field]))
	}
	return text.String() + ".", nil
}

const (
	onlyA = 1 + iota
	onlyB
	foreign
	otherPoints
	otherTime
)

// kindOf is how two rows differ; 0 where they may be of the same events, and for a member
// that neither side has: it was there when it was read first.
func kindOf(a, b Row, la, lb codec.Layout, end int64) int {
	switch {
	case !a.There && !b.There:
		return 0
	case !b.There:
		return onlyA
	case !a.There:
		return onlyB
	case a.Foreign || b.Foreign:
		return foreign
	case a.Points != b.Points:
		return otherPoints
	case !overlap(a, b, la, lb, end):
		return otherTime
	}
	return 0
}

// overlap reports whether two ticks, each told by its first millisecond, share one. Ticks
// are counted from the window's end, of each layout's own length, and the one that holds
// the window's start begins there.
func overlap(a, b Row, la, lb codec.Layout, end int64) bool {
	last := func(r Row, tick int64) int64 {
		first := r.ReachedAt.UnixMilli()
		return end - 1 - (end-1-first)/tick*tick
	}
	return a.ReachedAt.UnixMilli() <= last(b, lb.Tick) && b.ReachedAt.UnixMilli() <= last(a, la.Tick)
}
