package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sorted are the members in the order in which a sorter has them.
func sorted(ctx context.Context, t require.TestingT, s *Sorter) []Scored {
	n, err := s.Sort(ctx)
	require.NoError(t, err)
	all := []Scored{}
	require.NoError(t, s.Each(ctx, func(rank int64, m *Scored) error {
		require.EqualValues(t, len(all)+1, rank)
		all = append(all, *m)
		return nil
	}))
	require.Len(t, all, int(n))
	return all
}

// inOrder is what Redis's order is.
func inOrder(last map[string]float64) []Scored {
	all := []Scored{}
	for member, score := range last {
		all = append(all, Scored{member, score})
	}
	slices.SortFunc(all, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
	})
	return all
}

// Whatever is added in whichever order, and again, and dropped: members come once, with what was added
// last, by score and then by the bytes of their ids.
func TestMembersAreSortedAsRedisDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		rapid.Check(t, func(r *rapid.T) {
			sorter, err := s.Sorter(t.Context())
			require.NoError(r, err)
			defer sorter.Close()
			parts := make([]map[string]float64, 3)
			for range rapid.IntRange(0, 12).Draw(r, "steps") {
				part := rapid.IntRange(0, 2).Draw(r, "part")
				if rapid.IntRange(0, 5).Draw(r, "drops") == 0 {
					require.NoError(r, sorter.Drop(t.Context(), part))
					parts[part] = nil
					continue
				}
				var some []Scored
				for range rapid.IntRange(0, 8).Draw(r, "members") {
					id := fmt.Sprint(part) + rapid.SampledFrom([]string{"", "a", "b", "B", "ä", "\x00", "\u2400", "\U0001F600", "\uFFFD", "'"}).Draw(r, "id")
					some = append(some, Scored{id, rapid.SampledFrom([]float64{-1.5, 0, 1, 1 + 1e-15, 1e300}).Draw(r, "score")})
				}
				require.NoError(r, sorter.Add(t.Context(), part, some))
				for _, m := range some {
					if parts[part] == nil {
						parts[part] = map[string]float64{}
					}
					parts[part][m.Member] = m.Score
				}
			}
			last := map[string]float64{}
			for _, part := range parts {
				for member, score := range part {
					last[member] = score
				}
			}
			require.Equal(r, inOrder(last), sorted(t.Context(), r, sorter))
		})
	})
}

func TestMoreMembersThanAPageAreSorted(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		sorter, err := s.Sorter(t.Context())
		require.NoError(t, err)
		defer sorter.Close()
		last := map[string]float64{}
		for round := range 3 {
			var some []Scored
			for i := range 12_000 {
				m := Scored{fmt.Sprint("m", (i*7919+round*6000)%23_000), float64(i * (round + 1) % 100)}
				last[m.Member] = m.Score
				some = append(some, m)
			}
			require.NoError(t, sorter.Add(t.Context(), 0, some))
		}
		require.Equal(t, inOrder(last), sorted(t.Context(), t, sorter))
	})
}

func TestWhatIsSortedIsNobodyElses(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		one, err := s.Sorter(t.Context())
		require.NoError(t, err)
		defer one.Close()
		other, err := s.Sorter(t.Context())
		require.NoError(t, err)
		require.NoError(t, one.Add(t.Context(), 0, []Scored{{"a", 1}}))
		require.NoError(t, other.Add(t.Context(), 0, []Scored{{"b", 2}}))
		require.Equal(t, []Scored{{"a", 1}}, sorted(t.Context(), t, one))
		other.Close()
		again, err := s.Sorter(t.Context())
		require.NoError(t, err)
		defer again.Close()
		require.Empty(t, sorted(t.Context(), t, again))
	})
}
