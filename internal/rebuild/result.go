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

// Result is the result of a rebuild.
type Result struct {
	Plan    *Plan // of all shards, by the last attempt: what was done, or would have been done
	Swapped bool  // every shard has swapped
	Unsure  bool  // a shard may have swapped, or its swap died midway: Redis did not reply
	// Held is how long ingestion was held by the hold that led to the swap. Of several shards, which are
	// held one after the other, it is the longest.
	Held    time.Duration
	Holds   int   // number of holds on all shards
	Records int64 // number of records read
	// TooLarge is the number of these records in batches that took too much memory. The rebuilt boards lack
	// them, and a rebuild writes no dead letters.
	TooLarge int64
	Took     time.Duration
	// Differ lists the windows that were compared, and Differences the first standings that differ: A is
	// the live one, B the rebuilt one. Exact is false if more differ than can be recorded.
	Differ      []shadow.WindowDifference
	Differences []ranking.Difference
	Exact       bool

	Shards []ShardResult // one per shard, in order
}

// ShardResult is the result of a rebuild on one shard.
type ShardResult struct {
	Addr    string // the shard's server, host:port; empty if unknown
	Plan    *Plan  // nil until there is one
	Swapped bool
	Unsure  bool
	At      time.Time // when it swapped, by this process's clock; zero if it has not
	Held    time.Duration
	Holds   int

	done   bool // it has swapped, or a dry run has finished it
	differ []shadow.WindowDifference
	exact  bool
}

// sum computes the result from the shards' results.
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

// list adds the first standings that differ on one more shard, and keeps the first most of all.
func (r *Result) list(some []ranking.Difference, most int) {
	r.Differences = append(r.Differences, some...)
	slices.SortStableFunc(r.Differences, func(a, b ranking.Difference) int {
		return cmp.Or(a.Compare(b.Window), strings.Compare(a.Member, b.Member))
	})
	r.Differences = r.Differences[:min(len(r.Differences), most)]
}

// differTogether adds up the differences of the same window on several shards.
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

// Partly names the shards that are rebuilt and those that are not, if there are both; else it is empty.
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
