package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
)

// Rows of an open window come in any order, and a member may occur several times.
func TestABackupHasEachMemberOnceByTheRanksThatRedisGives(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		minutes := int64(0)
		rapid.Check(t, func(r *rapid.T) {
			minutes++
			rows := []Row{}
			for i := range rapid.IntRange(0, 30).Draw(r, "rows") {
				id := rapid.SampledFrom([]string{"a", "b", "B", "ä", "a\x00", "a\x01", "\x00", "\x01", "\x02", "\u2400", "\U0001F600", "\uFFFD", "'"}).Draw(r, "id")
				score := rapid.SampledFrom([]float64{-1.5, 0, 1, 1 + 1e-15, 1e300}).Draw(r, "score")
				rank := int64(i + 1)
				if rapid.Bool().Draw(r, "hidden") {
					rank = 0
				}
				rows = append(rows, Row{Place: int64(i + 1), Rank: rank, Member: id, Tuple: codec.Tuple{int64(i)}, Score: score, ReachedAt: week.UnixMilli() + int64(i)})
			}
			writing, err := s.Begin(t.Context(), first, backup(0, minutes))
			require.NoError(r, err)
			require.NoError(r, writing.Append(t.Context(), rows))
			require.NoError(r, writing.Finish(t.Context()))
			w := writing.Window()
			require.EqualValues(r, len(byRank(rows)), w.Places())
			found := all(r, s, w.ID)
			require.True(r, slices.Equal(byRank(rows), found), "%v instead of %v", found, byRank(rows))
			require.NoError(r, s.Verify(t.Context(), w.ID))
		})
	})
}

func TestABackupOfMoreRowsThanAPageHasRanks(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		writing, err := s.Begin(t.Context(), first, backup(0, 1))
		require.NoError(t, err)
		var rows []Row
		for i := range int64(readAtOnce + 600) {
			rows = append(rows, Row{Place: i + 1, Rank: i + 1, Member: fmt.Sprint("m", i*7919%(readAtOnce+100)), Score: float64(i * 31 % 100), ReachedAt: week.UnixMilli()})
		}
		for some := range slices.Chunk(rows, 4000) {
			require.NoError(t, writing.Append(t.Context(), some))
		}
		require.NoError(t, writing.Finish(t.Context()))
		require.Equal(t, byRank(rows), all(t, s, writing.Window().ID))
		_, err = s.Sweep(t.Context(), first)
		require.NoError(t, err)
		require.Equal(t, 0, states(t, s, false))
	})
}
