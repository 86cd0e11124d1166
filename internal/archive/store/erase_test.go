package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
)

// erasedRow is a row after its member was erased.
func erasedRow(r Row) Row { return Row{Place: r.Place, Rank: r.Rank} }

func TestAnErasureRemovesTheRowsOfAMemberFromEveryCopy(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		rows := hidden(ranked(1, 30), 5, 7)
		shown := archived(t, s, first, final(0), rows)
		second := final(0)
		second.Revision, second.Board, second.Fields = 2, "eu", twoFields()
		hid := archived(t, s, first, second, hidden(ranked(1, 30), 20))
		other := second
		other.Revision = 3
		without := archived(t, s, first, other, ranked(1, 10))
		unfinished := other
		unfinished.Revision, unfinished.Members = 4, 30
		begun, err := s.Begin(t.Context(), first, unfinished)
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), ranked(1, 25)))

		member := rows[19].Member
		require.Equal(t, "m158380", member)
		for range 2 { // also after a crash
			n, err := s.Erase(t.Context(), first, member)
			require.NoError(t, err)
			require.EqualValues(t, 2, n)
		}
		erased, err := s.Erasures(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]bool{member: true}, erased)

		rows[19] = erasedRow(rows[19])
		require.Equal(t, rows, all(t, s, shown.ID))
		require.Equal(t, Row{Place: 20}, all(t, s, hid.ID)[19])
		for _, of := range []struct{ id, members, hidden, erased int64 }{{shown.ID, 27, 2, 1}, {hid.ID, 29, 0, 1}, {without.ID, 10, 0, 0}} {
			w, err := s.ByID(t.Context(), of.id)
			require.NoError(t, err)
			require.Equal(t, []int64{of.members, of.hidden, of.erased}, []int64{w.Members, w.Hidden, w.Erased})
			require.NoError(t, s.Verify(t.Context(), of.id))
		}
		places, err := s.UnshownPlaces(t.Context(), shown.ID, false)
		require.NoError(t, err)
		require.Equal(t, []int64{20}, places)
		places, err = s.UnshownPlaces(t.Context(), shown.ID, true)
		require.NoError(t, err)
		require.Equal(t, []int64{5, 7, 20}, places)
		none, err := s.Members(t.Context(), shown.ID, []string{member})
		require.NoError(t, err)
		require.Empty(t, none)
		var n int
		require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM results WHERE member = 'm158380' OR rank = 18 AND board = 'global'`, nil, &n))
		require.Zero(t, n)
		require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM results WHERE board = 'global'`, nil, &n))
		require.Equal(t, 27, n)

		// An unfinished copy is dropped. A row of the member that is written again is erased before its copy is
		// shown.
		require.ErrorIs(t, begun.Append(t.Context(), ranked(26, 30)), ErrGone)
		again := archived(t, s, first, unfinished, ranked(1, 30))
		require.Equal(t, []int64{29, 1}, []int64{again.Members, again.Erased})
		require.Equal(t, erasedRow(ranked(20, 20)[0]), all(t, s, again.ID)[19])
		require.NoError(t, s.Verify(t.Context(), again.ID))
		backedUp := archived(t, s, first, backup(0, 1), placed(ranked(15, 25)))
		require.Equal(t, []int64{10, 1}, []int64{backedUp.Members, backedUp.Erased})
		require.NoError(t, s.Verify(t.Context(), backedUp.ID))
	})
}

// Places are correct among the remaining rows, whatever rows were erased.
func TestPlacesAreFoundBesideErasedRows(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		if s.read != s.write { // SQLite: the machine does not crash here
			_, err := s.write.ExecContext(t.Context(), `PRAGMA synchronous = OFF`)
			require.NoError(t, err)
		}
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			w := final(0)
			w.Board = fmt.Sprint("b", round)
			points := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 12).Draw(r, "points")
			var rows []Row
			for value := int64(4); value >= 0; value-- {
				for i, p := range points {
					if p == value {
						rows = append(rows, Row{Rank: 1, Member: fmt.Sprint(w.Board, "-", i), Tuple: codec.Tuple{p}, Score: float64(p), ReachedAt: week.UnixMilli()})
					}
				}
			}
			w = archived(t, s, first, w, placed(rows))
			for i := range rows {
				if rapid.Bool().Draw(r, "erased") {
					_, err := s.Erase(t.Context(), first, rows[i].Member)
					require.NoError(r, err)
					rows[i] = erasedRow(rows[i])
				}
			}
			require.NoError(r, s.Verify(t.Context(), w.ID))
			left := func(upTo int64) (n int64) {
				for _, row := range rows[:upTo] {
					if !row.Erased() {
						n++
					}
				}
				return n
			}
			for asked := int64(-1); asked <= 5; asked++ {
				var want Places
				for _, row := range rows {
					if !row.Erased() && row.Tuple[0] >= asked {
						want.AtLeast++
						if row.Tuple[0] > asked {
							want.Better++
						}
					}
				}
				found, err := s.Places(t.Context(), &w, []codec.Tuple{{asked}})
				require.NoError(r, err)
				require.Equal(r, want, Places{left(found[0].Better), left(found[0].AtLeast)})
				byScore, err := s.PlaceOfScore(t.Context(), w.ID, float64(asked))
				require.NoError(r, err)
				require.Equal(r, want, Places{left(byScore.Better), left(byScore.AtLeast)})
			}
		})
	})
}
