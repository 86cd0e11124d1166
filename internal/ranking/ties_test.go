package ranking

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
)

// For any page of a sorted list, Tie derives every row's counts from those of the page's ends; they equal
// the counts over the whole list.
func TestRowsSideBySideSayHowManyHaveAsMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ruled := rapid.Bool().Draw(t, "by a rule")
		var all []Standing
		points := rapid.Int64Range(-3, 3).Draw(t, "most")
		for i := range rapid.IntRange(1, 20).Draw(t, "members") {
			points -= rapid.Int64Range(0, 1).Draw(t, "less")
			st := Standing{Rank: int64(i + 1), Points: points}
			if ruled {
				st.Points, st.Tuple = 0, codec.Tuple{1, points}
			}
			all = append(all, st)
		}
		of := func(st Standing) (more, atLeast int64) {
			for _, other := range all {
				switch {
				case other.Points == st.Points && other.Tuple == st.Tuple:
					atLeast++
				case other.Rank < st.Rank:
					more++
				}
			}
			return more, more + atLeast
		}
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		page := append([]Standing(nil), all[from:rapid.IntRange(from+1, len(all)).Draw(t, "to")]...)
		more, _ := of(page[0])
		_, atLeast := of(page[len(page)-1])
		Tie(page, more, atLeast)
		for _, st := range page {
			more, atLeast := of(st)
			require.Equal(t, []int64{more, atLeast}, []int64{st.More, st.AtLeast}, "rank %d", st.Rank)
		}
	})
}

func TestCountsOfAnotherMomentDontContradictARank(t *testing.T) {
	page := []Standing{{Rank: 5, Points: 9}, {Rank: 6, Points: 8}}
	Tie(page, 7, 2)
	require.Equal(t, []Standing{{Rank: 5, Points: 9, More: 4, AtLeast: 5}, {Rank: 6, Points: 8, More: 5, AtLeast: 6}}, page)
	Tie(nil, 1, 1)
}
