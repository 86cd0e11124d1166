package store

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
)

// The places of a tuple equal those found by reading all rows, whatever the scores are.
func TestPlacesOfTuplesAreThoseOfGoingThroughAllRows(t *testing.T) {
	kinds := map[string][]codec.Field{
		"points": nil, "signed": {{Name: "n", Max: 9, Signed: true}},
		"three": {{Name: "wins", Max: 3}, {Name: "falls", Max: 3, Fewest: true}, {Name: "n", Max: 3}},
	}
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		random := rand.New(rand.NewPCG(1, 2))
		for kind, fields := range kinds {
			tuple := func() (tuple codec.Tuple) {
				for i := range max(1, len(fields)) {
					if tuple[i] = random.Int64N(4); fields == nil || fields[i].Signed {
						tuple[i] -= 2
					}
				}
				return tuple
			}
			compare := func(a, b codec.Tuple) int { // the better tuple first
				for i := range max(1, len(fields)) {
					c := cmp.Compare(b[i], a[i])
					if fields != nil && fields[i].Fewest {
						c = -c
					}
					if c != 0 {
						return c
					}
				}
				return 0
			}
			for _, n := range []int{0, 1, 2, 3, 16, 40} {
				tuples := make([]codec.Tuple, n)
				for i := range tuples {
					tuples[i] = tuple()
				}
				slices.SortFunc(tuples, compare)
				rows := make([]Row, n)
				for i, tuple := range tuples {
					rows[i] = Row{Place: int64(i + 1), Rank: int64(i + 1), Member: fmt.Sprint("m", i), Tuple: tuple, Score: float64(100 - i), ReachedAt: week.UnixMilli()}
				}
				w := final(0)
				w.Board, w.Name, w.Fields = kind, fmt.Sprint("w", n), fields
				w = archived(t, s, first, w, rows)
				asked := make([]codec.Tuple, 2*tuplesAtOnce+1)
				for i := range asked {
					asked[i] = tuple()
				}
				found, err := s.Places(t.Context(), &w, asked)
				require.NoError(t, err)
				require.Len(t, found, len(asked))
				for i, a := range asked {
					var want Places
					for _, b := range tuples {
						if c := compare(b, a); c <= 0 {
							want.AtLeast++
							if c < 0 {
								want.Better++
							}
						}
					}
					require.Equal(t, want, found[i], "%v among %v", a, tuples)
				}
			}
		}
		gone := final(1)
		gone.ID = 1 << 40
		_, err := s.Places(t.Context(), &gone, []codec.Tuple{{}})
		require.ErrorIs(t, err, ErrGone)
		gone.Fields = []codec.Field{{Name: "n' OR 1 --", Max: 1}}
		_, err = s.Places(t.Context(), &gone, []codec.Tuple{{}})
		require.ErrorContains(t, err, "read the fields", "a name goes into the query only where it is one")
	})
}

func TestTheArchiveListsItsBoardsWithTheirFirstAndLastWindows(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		all, err := s.Kept(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
		add := func(board, name string, weeks int, revision int64) {
			w := final(0)
			w.Board, w.Name, w.Revision = board, name, revision
			w.Start, w.End = week.AddDate(0, 0, 7*weeks), week.AddDate(0, 0, 7*weeks+7)
			if revision == 0 {
				w.SealedAt = time.Time{}
			}
			archived(t, s, first, w, nil)
		}
		add("eu", "second", 1, 1)
		add("eu", "second", 1, 2)
		add("eu", "first", 0, 1)
		add("eu", "third", 2, 0)
		add("asia", "only", 5, 0)
		writing := final(5)
		writing.Board = "nowhere"
		_, err = s.Begin(t.Context(), first, writing)
		require.NoError(t, err)
		all, err = s.Kept(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Kept{
			{"asia", "weekly", 1, "only", "only", week.AddDate(0, 0, 35), week.AddDate(0, 0, 35)},
			{"eu", "weekly", 3, "first", "third", week, week.AddDate(0, 0, 14)},
		}, all)
	})
}
