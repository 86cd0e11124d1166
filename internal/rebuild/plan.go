package rebuild

import (
	"fmt"
	"maps"
	"slices"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Plan is what a rebuild is about to do, on one shard or on all of them.
//
// Of several shards a partition is as of the shard that is furthest behind, and a window is
// there once if the same becomes of it wherever it is, else once for each that becomes of it.
type Plan struct {
	*shadow.Plan
	Starts []ingest.ReplayStart
	Until  map[string]int64 // by field, where the live ledger stood at first
	Of     int              // how many shards it is of; 0 is one
	// Shards are those that each of the windows is of, where another becomes of it on others;
	// else, and of one shard, nil.
	Shards [][]int
}

// Replaces is the number of windows that are replaced, or dropped, on some shard.
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

// unknown are those boards of which there is no window.
func (p *Plan) unknown(boards []string) []string {
	return slices.DeleteFunc(slices.Clone(boards), func(board string) bool {
		return slices.ContainsFunc(p.Windows, func(w shadow.Planned) bool { return w.Board == board })
	})
}

// idle reports whether there is nothing to do on a shard: no window to replace, and no ledger
// to settle. What the log alone knows isn't known yet, but for a window that nobody counted
// in the log is read by those who ask for its board. Where no window is known at all, the
// listing may be what was lost.
func (p *Plan) idle() bool {
	return p.Replaces() == 0 && len(p.Windows) > 0 && !p.Orphaned && len(p.Torn) == 0
}

// together is the plan of all shards, by their number; of one shard it is that shard's. A shard
// may have none yet; nil: none has.
func together(plans []*Plan) *Plan {
	if len(plans) == 1 {
		return plans[0]
	}
	all := &Plan{Plan: &shadow.Plan{Live: map[string]string{}, Shadow: map[string]string{}}, Until: map[string]int64{}, Of: len(plans)}
	starts := map[string]ingest.ReplayStart{}
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

// further is a partition's start as of all shards: the lowest offset, and the latest time from
// which its events were read.
func further(starts map[string]ingest.ReplayStart, s ingest.ReplayStart) ingest.ReplayStart {
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

// furthestBehind has the positions be the lower ones of two shards.
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

// windows takes in those of all shards.
func (p *Plan) windows(plans []*Plan) {
	// fate is what becomes of a window, as it is shown.
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
