// Package diff compares the standings under two prefixes by what they say: points, and when
// they were reached, to the coarser tick of the two. The two may be of different layouts and
// of different numbers of shards.
//
//	listings of all shards ─▶ windows ─▶ every member of either side, with both scores
//	                                      │ differ, and the ledgers moved: look again
//	                                      ▼
//	                                     what differs, and whether that is exact
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
)

// Prefixes are two prefixes being compared. A is the first.
type Prefixes struct {
	A, B *ranking.View
	// Boards, Periods and Windows are those to be compared, by their names; none is all.
	Boards, Periods, Windows []string
	// Bound is how many members that differ are looked at again at most, a window.
	Bound int
	// Pause is waited for between two calls.
	Pause time.Duration
	// Each receives every standing that differs, window by window; nil is nobody.
	Each func(ranking.Difference) error
}

// Window is a window in which standings under two prefixes were compared.
type Window struct {
	ledger.Window // as A lists it, if it does

	InA, InB bool // it is listed
	// Why it couldn't be compared; empty where it was.
	Why string

	OnlyA, OnlyB int // members that one side has alone
	Points       int // members with other points
	Times        int // members with the same points, reached at another time
	Foreign      int // members with a score that none of our layouts writes
	// Exact: the ledgers stood at the same positions all the while (see same), so that
	// whatever differs does. Else traffic may account for it, or that one side is behind.
	Exact bool
	// More differ than the bound: the numbers are too low.
	More bool
	// IncompleteA and IncompleteB are partitions of which events before a time after the
	// window's start aren't in.
	IncompleteA, IncompleteB []string

	rule   string // of its board, by the listing; empty is the default one
	a, b   codec.TupleLayout
	fields codec.Fields
}

// Differs reports whether a window isn't the same on both sides.
func (w *Window) Differs() bool {
	return w.Why != "" || w.More || w.OnlyA+w.OnlyB+w.Points+w.Times+w.Foreign > 0
}

// side is what stands beside the boards of one prefix, by shard.
type side struct {
	view     *ranking.View
	states   []ledger.State
	listings []map[string]string
}

func sideOf(ctx context.Context, v *ranking.View) (s side, err error) {
	s.view = v
	if s.states, err = v.States(ctx); err == nil {
		s.listings, err = v.Listings(ctx)
	}
	return s, err
}

// Run compares every window that either side lists, by board, period and start. One whose
// retention is over on either side is left out. *UnmatchedError says that none is of a
// board, a period or a name that is to be compared.
func (d *Prefixes) Run(ctx context.Context) ([]Window, error) {
	a, err := sideOf(ctx, d.A)
	if err != nil {
		return nil, err
	}
	b, err := sideOf(ctx, d.B)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, listing := range slices.Concat(a.listings, b.listings) {
		maps.Copy(names, listing)
	}
	var all []Window
	for name := range names {
		w, ok, err := d.window(name, &a, &b)
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
	slices.SortFunc(all, func(x, y Window) int { return x.Compare(y.Window) })
	for i := range all {
		if all[i].Why != "" {
			continue
		}
		if err := d.compare(ctx, &all[i]); err != nil {
			return nil, fmt.Errorf("compare %s: %w", all[i].Listing(), err)
		}
	}
	return all, nil
}

// window is what is known of a window beforehand; ok is false for one that is over.
func (d *Prefixes) window(name string, a, b *side) (w Window, ok bool, err error) {
	inA, ruleA, cutA, err := a.lists(name, &w)
	if err != nil {
		return w, false, err // not for who asks for others
	}
	ofA := w.Window
	inB, ruleB, cutB, err := b.lists(name, &w)
	if err != nil {
		return w, false, err
	}
	if inA == over || inB == over {
		return w, false, nil
	}
	otherwise := cutA || cutB || inA == live && inB == live && ofA != w.Window
	if w.InA, w.InB = inA == live, inB == live; w.InA {
		w.Window = ofA
	}
	if w.rule = ruleA; inA != live {
		w.rule = ruleB
	}
	var keptA, keptB bool
	if w.a, w.fields, keptA, err = d.A.LayoutOf(w.Period, w.rule); err == nil {
		w.b, _, keptB, err = d.B.LayoutOf(w.Period, w.rule)
	}
	switch {
	case err != nil:
		w.Why = err.Error()
	case !keptA:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.A.Prefix)
	case !keptB:
		w.Why = fmt.Sprintf("%s boards aren't kept under %s", w.Period, d.B.Prefix)
	case otherwise:
		w.Why = "it is cut otherwise under the two: by another time zone, week start, or time zone data"
	case w.InA != w.InB && d.otherCalendar(w.Period):
		w.Why = "the two cut their windows otherwise: by another time zone or week start"
	case inA == live && inB == live && ruleA != ruleB:
		w.Why = fmt.Sprintf("its board has another rule under the two: %s and %s", ranking.RuleName(ruleA), ranking.RuleName(ruleB))
	}
	if w.IncompleteA, err = a.incomplete(w.Start); err != nil {
		return w, false, err
	}
	if w.IncompleteB, err = b.incomplete(w.Start); err != nil {
		return w, false, err
	}
	return w, true, nil
}

const (
	unlisted = iota // by no shard
	live
	over // by the clock of a shard that lists it
)

// lists reads how a side lists a window, on whichever of its shards: cut says that they
// don't agree when it starts and ends.
func (s *side) lists(name string, w *Window) (is int, rule string, cut bool, err error) {
	for i, listing := range s.listings {
		text, there := listing[name]
		if !there {
			continue
		}
		one, expires, err := ranking.ParseListing(name, text)
		if before := w.Window; is != unlisted && err == nil && (one != before || rule != ranking.ListedRule(text)) {
			cut = true
		}
		rule = ranking.ListedRule(text)
		if w.Window = one; err != nil {
			return is, rule, cut, err
		}
		if expires <= s.states[i].Now.UnixMilli() {
			return over, rule, cut, nil
		}
		is = live
	}
	return is, rule, cut, nil
}

// incomplete are the partitions of which events are missing on some shard.
func (s *side) incomplete(start int64) ([]string, error) {
	var all []string
	for i := range s.states {
		some, err := ranking.Incomplete(s.states[i].Origins, start)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (d *Prefixes) otherCalendar(period string) bool {
	return !d.A.SameWindows(d.B, period)
}
