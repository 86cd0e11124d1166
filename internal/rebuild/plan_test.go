package rebuild

// Laws of the merged plan of several shards.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/shadow"
)

func drawPlan(t *rapid.T) *Plan {
	p := &Plan{Plan: &shadow.Plan{Shadow: map[string]string{}}, Until: map[string]int64{}}
	for _, field := range []string{"a/0", "a/1"} {
		if rapid.Bool().Draw(t, "there") {
			at := rapid.Int64Range(0, 9).Draw(t, "at")
			p.Starts = append(p.Starts, replay.Start{Field: field, At: at, Origin: ledger.Origin{Offset: at, Time: rapid.Int64Range(0, 9).Draw(t, "since")}})
			p.Until[field] = at + rapid.Int64Range(0, 9).Draw(t, "ahead")
			p.Shadow[field] = strconv.FormatInt(p.Until[field], 10)
		}
	}
	for _, board := range []string{"eu", "us"} {
		if rapid.Bool().Draw(t, "listed") {
			w := shadow.Planned{Window: ledger.Window{Board: board}, Action: shadow.Action(rapid.IntRange(0, 3).Draw(t, "action"))}
			if w.Action == shadow.Kept {
				w.Why = rapid.SampledFrom([]string{"one", "other"}).Draw(t, "why")
			}
			p.Windows = append(p.Windows, w)
		}
	}
	if rapid.Bool().Draw(t, "refused") {
		p.Refused = []string{rapid.SampledFrom([]string{"this", "that"}).Draw(t, "reason")}
	}
	return p
}

func TestOneShardsPlanIsThePlan(t *testing.T) {
	p := &Plan{Plan: &shadow.Plan{}}
	require.Same(t, p, together([]*Plan{p}))
	require.Nil(t, together([]*Plan{nil, nil}))
}

// The merged plan contains, for each shard, exactly the actions of that shard's plan.
func TestThePlanOfAllShardsSaysOfEachWhatItsOwnSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plans := make([]*Plan, rapid.IntRange(2, 4).Draw(t, "shards"))
		for i := range plans {
			if rapid.IntRange(0, 9).Draw(t, "planned") > 0 {
				plans[i] = drawPlan(t)
			}
		}
		all := together(plans)
		if all == nil {
			return
		}
		require.Len(t, all.Shards, len(all.Windows))
		lists := func(p *Plan, w ledger.Window) bool {
			return slices.ContainsFunc(p.Windows, func(one shadow.Planned) bool { return one.Window == w })
		}
		var of []string // shard, window and action, by the merged plan
		for i, w := range all.Windows {
			for shard, p := range plans {
				if p != nil && (slices.Contains(all.Shards[i], shard) || all.Shards[i] == nil && lists(p, w.Window)) {
					of = append(of, fmt.Sprint(shard, w.Board, w.Action, w.Why))
				}
			}
		}
		var want []string
		for shard, p := range plans {
			if p == nil {
				continue
			}
			for _, w := range p.Windows {
				want = append(want, fmt.Sprint(shard, w.Board, w.Action, w.Why))
			}
			for _, s := range p.Starts {
				i := slices.IndexFunc(all.Starts, func(one replay.Start) bool { return one.Field == s.Field })
				require.LessOrEqual(t, all.Starts[i].At, s.At)
				require.GreaterOrEqual(t, all.Starts[i].Origin.Time, s.Origin.Time, "complete on every shard since then")
				require.LessOrEqual(t, all.Until[s.Field], p.Until[s.Field])
				require.LessOrEqual(t, number(t, all.Shadow[s.Field]), number(t, p.Shadow[s.Field]))
			}
			for _, reason := range p.Refused {
				require.True(t, slices.ContainsFunc(all.Refused, func(text string) bool { return strings.HasSuffix(text, ": "+reason) }))
			}
		}
		require.ElementsMatch(t, want, of)
		require.True(t, slices.IsSortedFunc(all.Windows, func(a, b shadow.Planned) int { return a.Compare(b.Window) }))
	})
}

func TestShardsAreNamedInRuns(t *testing.T) {
	for want, some := range map[string][]int{
		"shard 3 of 12":                    {3},
		"shards 3 and 4 of 12":             {3, 4},
		"shards 0 to 2 of 12":              {0, 1, 2},
		"shards 0 to 3, 7, 9 and 10 of 12": {0, 1, 2, 3, 7, 9, 10},
		"shards 1 and 4 to 11 of 12":       {1, 4, 5, 6, 7, 8, 9, 10, 11},
	} {
		require.Equal(t, want, ShardNames(some, 12))
	}
}

func TestTheLimitOfSeveralShardsIsWhatAllOfThemHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var live []ledger.Position
		for range rapid.IntRange(1, 4).Draw(t, "shards") {
			at := ledger.At(rapid.Int64Range(0, 9).Draw(t, "from"))
			if rapid.Bool().Draw(t, "sweeping") {
				at.To += rapid.Int64Range(1, 9).Draw(t, "length")
				at.Hash = rapid.Uint64Min(1).Draw(t, "hash")
			}
			live = append(live, at)
		}
		limit, ok := lowest(live)
		require.True(t, ok)
		require.False(t, limit.Sweeping())
		some := false
		for _, at := range live {
			require.True(t, replay.Leads(limit, at), "%v is never past %v", limit, at)
			some = some || limit.From == at.From
		}
		require.True(t, some, "and no lower than it has to be")
	})
	_, ok := lowest(nil)
	require.False(t, ok)
}

func number(t *rapid.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
