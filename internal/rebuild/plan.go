package rebuild

import (
	"fmt"
	"maps"
	"slices"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Plan lists the actions of a rebuild, on one shard or on all of them.
//
// With several shards a partition has the position of the shard that is furthest behind. A window has one
// entry for each different action that the shards take on it.
type Plan struct {
	*shadow.Plan
	Starts []replay.Start
	Until  map[string]int64 // by field, the live ledger's position at the start
	Of     int              // number of shards; 0 means one
	// Shards lists the shards of each entry of Windows; an entry is nil if all shards take the same action.
	// It is nil for one shard.
	Shards [][]int
}

// Replaces returns the number of windows that are replaced or dropped on some shard.
func (p *Plan) Replaces() int {
	n := 0
	var last *shadow.Planned
	for i := range p.Windows {
		w := &p.Windows[i]
		if w.Action != shadow.Replaced && w.Action != shadow.Dropped || last != nil && last.Window == w.Window {
			continue
		}
		n, last = n+1, w
	}
	return n
}

// unknown returns the boards that have no window in the plan.
func (p *Plan) unknown(boards []string) []string {
	return slices.DeleteFunc(slices.Clone(boards), func(board string) bool {
		return slices.ContainsFunc(p.Windows, func(w shadow.Planned) bool { return w.Board == board })
	})
}

// idle reports whether there is nothing to do on a shard: no window to replace, and no ledger to repair.
// Windows that only the log has are not known yet; the log is read for them if the operator names their
// board. If no window is known at all, the listing may have been lost, so the shard is not idle.
func (p *Plan) idle() bool {
	return p.Replaces() == 0 && len(p.Windows) > 0 && !p.Orphaned && len(p.Torn) == 0
}

// together merges the plans of all shards, by shard number. With one shard it returns that shard's plan. It
// returns nil if no shard has a plan yet.
func together(plans []*Plan) *Plan {
	if len(plans) == 1 {
		return plans[0]
	}
	all := &Plan{Plan: &shadow.Plan{Live: map[string]string{}, Shadow: map[string]string{}}, Until: map[string]int64{}, Of: len(plans)}
	starts := map[string]replay.Start{}
	refused := map[string][]int{}
	planned := false
	for shard, p := range plans {
		if p == nil {
			continue
		}
		planned = true
		all.From, all.Orphaned = max(all.From, p.From), all.Orphaned || p.Orphaned
		all.Torn = append(all.Torn, p.Torn...)
		for _, s := range p.Starts {
			starts[s.Field] = further(starts, s)
		}
		for field, at := range p.Until {
			if was, ok := all.Until[field]; !ok || at < was {
				all.Until[field] = at
			}
		}
		furthestBehind(all.Live, p.Live)
		furthestBehind(all.Shadow, p.Shadow)
		for _, reason := range p.Refused {
			refused[reason] = append(refused[reason], shard)
		}
	}
	if !planned {
		return nil
	}
	slices.Sort(all.Torn)
	all.Torn = slices.Compact(all.Torn)
	for _, field := range slices.Sorted(maps.Keys(starts)) {
		all.Starts = append(all.Starts, starts[field])
	}
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		all.Refused = append(all.Refused, fmt.Sprintf("%s: %s", ShardNames(refused[reason], len(plans)), reason))
	}
	all.windows(plans)
	return all
}

// further merges a partition's starts on two shards: the lower offset, and the later time from which its
// events were read.
func further(starts map[string]replay.Start, s replay.Start) replay.Start {
	was, ok := starts[s.Field]
	if !ok {
		return s
	}
	was.At, was.LogStart = min(was.At, s.At), was.LogStart || s.LogStart
	if s.Origin.Time > was.Origin.Time {
		was.Origin = s.Origin
	}
	return was
}

// furthestBehind lowers the positions in all to those of another shard that are lower.
func furthestBehind(all, of map[string]string) {
	for field, text := range of {
		at, err := ledger.Counted(text)
		was, known := all[field]
		if known && err == nil {
			if stood, err := ledger.Counted(was); err == nil && stood.From <= at.From {
				continue
			}
		}
		all[field] = text
	}
}

// windows merges the windows of all shards.
func (p *Plan) windows(plans []*Plan) {
	// fate is the action on a window, as it is shown.
	type fate struct {
		ledger.Window
		action           shadow.Action
		why              string
		lost, incomplete bool
	}
	where := map[fate][]int{}
	of := map[fate]shadow.Planned{}
	kinds := map[ledger.Window]int{}
	for shard, one := range plans {
		if one == nil {
			continue
		}
		for _, w := range one.Windows {
			f := fate{w.Window, w.Action, w.Why, w.Lost, w.Incomplete}
			if len(where[f]) == 0 {
				of[f] = w
				kinds[w.Window]++
			}
			where[f] = append(where[f], shard)
		}
	}
	rows := slices.SortedFunc(maps.Keys(where), func(a, b fate) int {
		if c := a.Compare(b.Window); c != 0 {
			return c
		}
		return slices.Compare(where[a], where[b])
	})
	for _, f := range rows {
		p.Windows = append(p.Windows, of[f])
		shards := where[f]
		if kinds[f.Window] == 1 {
			shards = nil
		}
		p.Shards = append(p.Shards, shards)
	}
}
