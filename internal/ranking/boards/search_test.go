package boards

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// For any distribution of rows: the pivot has no more rows above it than the page, the remaining rows
// shrink until they can be read, and the rows above the page are within the bounds.
func TestASearchEndsAtAPivotHardlyAboveThePage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]int{2, 3, 16, 64}).Draw(t, "shards")
		n := rapid.SampledFrom([]int{2000, 30_000, 100_000}).Draw(t, "rows")
		scores := rapid.SampledFrom([]int{1, 10, n}).Draw(t, "scores")
		skew := rapid.IntRange(0, 3).Draw(t, "skew") // 0 evenly, 3 nearly all on one shard
		shards := make([][]ranking.Pivot, of)
		parts := make([]ranking.Part, of)
		for i := range n {
			home := int(uint64(i) * 0x9e3779b97f4a7c15 >> 32 % uint64(of))
			if i*7919%4 < skew {
				home = i / 1000 % of // long runs of one shard
			}
			shards[home] = append(shards[home], ranking.Pivot{Score: float64(i * 31 % scores), Member: fmt.Sprint(i)})
			parts[home].Members++
		}
		for _, rows := range shards {
			slices.SortFunc(rows, comparePivots)
		}
		target := rapid.IntRange(0, n-1).Draw(t, "target")

		b := &Boards{of: ledger.Shards(of), shards: make([]*ranking.Store, of)}
		s := newSearch(b, "", periods.Window{}, parts, target)
		rounds := 0
		s.rows = func(_ context.Context, ranks [][]int64) ([][]ranking.Pivot, error) {
			rounds++
			all := make([][]ranking.Pivot, of)
			for i, some := range ranks {
				for _, rank := range some {
					all[i] = append(all[i], shards[i][rank])
				}
			}
			return all, nil
		}
		require.NoError(t, s.run(t.Context()))
		require.LessOrEqual(t, rounds, 6)

		above := 0
		merged := slices.Concat(shards...)
		slices.SortFunc(merged, comparePivots)
		for i, rows := range shards {
			here, first := 0, 0
			for _, p := range rows {
				if comparePivots(p, s.pivot) < 0 {
					here++
				}
				if target > 0 && comparePivots(p, merged[target-1]) <= 0 {
					first++
				}
			}
			above += here
			require.LessOrEqual(t, s.low[i], int64(first))
			require.GreaterOrEqual(t, s.high[i], int64(first))
			require.GreaterOrEqual(t, int64(here), s.low[i])
		}
		require.LessOrEqual(t, above, target)
		require.LessOrEqual(t, s.left(), max(nearEnough, 2*int64(of)))
		require.LessOrEqual(t, int64(target-above), s.left())
	})
}
