package rebuild

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Result is what came of a rebuild.
type Result struct {
	Plan    *Plan // of all shards, the last: what was done, or would have been
	Swapped bool  // every shard
	Unsure  bool  // some shard may have swapped, or its swap died midway: Redis never said
	// Held is how long ingestion stood still, of the hold that led to the swap; of several
	// shards, which are held one after another, the longest.
	Held    time.Duration
	Holds   int   // how often it was held, all shards together
	Records int64 // that were read
	// TooLarge are those of them in batches that took too much memory: they aren't in what was rebuilt, and a
	// rebuild writes no dead letters.
	TooLarge int64
	Took     time.Duration
	// Differ are the windows that were compared, and Differences the first standings that
	// differ: A is the live one, B the rebuilt. Exact is false where there were more than
	// could be remembered.
	Differ      []shadow.WindowDifference
	Differences []ranking.Difference
	Exact       bool

	Shards []ShardResult // one a shard, in order
}

// ShardResult is what came of a rebuild on one shard.
type ShardResult struct {
	Addr    string // the server that has it, host:port; empty if that isn't known
	Plan    *Plan  // nil before there was one
	Swapped bool
	Unsure  bool
	At      time.Time // when it had swapped, by this process's clock; zero if it hasn't
	Held    time.Duration
	Holds   int

	done   bool // its turn is over: it has swapped, or a dry run was through with it
	differ []shadow.WindowDifference
	exact  bool
}

// sum makes the whole of the shards' results.
func (r *Result) sum() {
	var plans []*Plan
	r.Swapped, r.Unsure, r.Held, r.Holds = true, false, 0, 0
	r.Differ, r.Exact = nil, true
	for i := range r.Shards {
		s := &r.Shards[i]
		plans = append(plans, s.Plan)
		r.Swapped, r.Unsure = r.Swapped && s.Swapped, r.Unsure || s.Unsure
		r.Held, r.Holds = max(r.Held, s.Held), r.Holds+s.Holds
		r.Differ, r.Exact = append(r.Differ, s.differ...), r.Exact && s.exact
	}
	r.Plan = together(plans)
	if len(r.Shards) > 1 {
		r.Differ = differTogether(r.Differ)
	}
}

// list takes in the first standings that differ on one more shard, and keeps the first so many
// of all.
func (r *Result) list(some []ranking.Difference, most int) {
	r.Differences = append(r.Differences, some...)
	slices.SortStableFunc(r.Differences, func(a, b ranking.Difference) int {
		return cmp.Or(a.Compare(b.Window), strings.Compare(a.Member, b.Member))
	})
	r.Differences = r.Differences[:min(len(r.Differences), most)]
}

// differTogether adds up what differs in the same window on several shards.
func differTogether(all []shadow.WindowDifference) []shadow.WindowDifference {
	byWindow := map[ledger.Window]shadow.WindowDifference{}
	for _, d := range all {
		sum, ok := byWindow[d.Window]
		if !ok {
			sum = shadow.WindowDifference{Planned: d.Planned}
		}
		sum.Differ, sum.OnlyA, sum.OnlyB = sum.Differ+d.Differ, sum.OnlyA+d.OnlyA, sum.OnlyB+d.OnlyB
		byWindow[d.Window] = sum
	}
	return slices.SortedFunc(maps.Values(byWindow), func(a, b shadow.WindowDifference) int { return a.Compare(b.Window) })
}

// Partly says of several shards which are rebuilt and which aren't, where not all are alike; else
// it is empty.
func (r *Result) Partly() string {
	var rebuilt, unsure, others []int
	for i := range r.Shards {
		switch s := &r.Shards[i]; {
		case s.Swapped:
			rebuilt = append(rebuilt, i)
		case s.Unsure:
			unsure = append(unsure, i)
		default:
			others = append(others, i)
		}
	}
	if len(rebuilt) == len(r.Shards) || len(others) == len(r.Shards) || len(r.Shards) == 1 {
		return ""
	}
	var says []string
	for _, kind := range []struct {
		shards []int
		is     string
	}{{rebuilt, "rebuilt"}, {unsure, "swapped or not: that isn't known"}, {others, "as before"}} {
		if len(kind.shards) > 0 {
			verb := " are "
			if len(kind.shards) == 1 {
				verb = " is "
			}
			says = append(says, ShardNames(kind.shards, len(r.Shards))+verb+kind.is)
		}
	}
	return strings.Join(says, "; ")
}

// ShardNames names some of several shards for people: shards 0 to 3 and 7 of 12.
func ShardNames(some []int, of int) string {
	var runs []string
	for i := 0; i < len(some); {
		j := i
		for j+1 < len(some) && some[j+1] == some[j]+1 {
			j++
		}
		switch {
		case j-i > 1:
			runs = append(runs, fmt.Sprintf("%d to %d", some[i], some[j]))
		default:
			for _, n := range some[i : j+1] {
				runs = append(runs, fmt.Sprint(n))
			}
		}
		i = j + 1
	}
	name := "shards "
	if len(some) == 1 {
		name = "shard "
	}
	if last := len(runs) - 1; last > 0 {
		runs = []string{strings.Join(runs[:last], ", "), runs[last]}
	}
	return fmt.Sprintf("%s%s of %d", name, strings.Join(runs, " and "), of)
}
