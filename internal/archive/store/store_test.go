package store

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		rows := hidden(ranked(1, readAtOnce+2), 1, readAtOnce, readAtOnce+1)
		w := final(int64(len(rows) - 3))
		w.Hidden = 3
		writing, err := s.Begin(t.Context(), first, w)
		require.NoError(t, err)
		require.False(t, writing.Whole())
		for some := range slices.Chunk(rows, 4000) {
			require.NoError(t, writing.Append(t.Context(), some))
		}
		_, err = s.Window(t.Context(), "global", "weekly", "2026-W47")
		require.ErrorIs(t, err, ErrNotFound, "it isn't whole yet")
		require.ErrorIs(t, s.Verify(t.Context(), writing.Window().ID), ErrGone)
		require.NoError(t, writing.Finish(t.Context()))

		found, err := s.Window(t.Context(), "global", "weekly", "2026-W47")
		require.NoError(t, err)
		require.Equal(t, writing.Window(), found)
		var sum Checksum
		for i := range rows {
			sum.Add(&rows[i], 0)
		}
		w.ID, w.Written, w.Checksum, w.State = found.ID, w.Places(), sum, Whole
		require.Equal(t, w, found)
		require.Equal(t, rows, all(t, s, found.ID))
		require.NoError(t, s.Verify(t.Context(), found.ID))
	})
}

// Fields, extreme scores and every kind of id are read back byte for byte.
func TestRowsComeBackBitForBit(t *testing.T) {
	members := []string{
		"a", "\x00", "a\x00b", "\u2400", "\u24000", "\u2400\u2400", "\x01", "\x00\x01", "\x01\x01", "a\x01\x02", `back\slash`, "o'hara", "\"", "\n\t", "é", "e\u0301",
		"\U0010FFFF", "\uFFFE", "%", "_", "👩‍👩‍👧", string(make([]byte, 256)), "A", " a", "a ",
	}
	scores := []float64{
		math.MaxFloat64, 1 << 62, 1<<53 + 2, 1 << 53, 99_999_999.999999985, 1.0000000000000002, 1, 0.1, math.SmallestNonzeroFloat64, 0,
		-math.SmallestNonzeroFloat64, -1, -math.MaxFloat64,
	}
	fields := []codec.Field{{Name: "wins", Max: 1 << 52}, {Name: "losses", Max: 9, Fewest: true}, {Name: "z", Max: 1}}
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		for board, of := range map[string][]codec.Field{"points": nil, "signed": {{Name: "n", Max: 5, Signed: true}}, "fields": fields} {
			w := final(0)
			w.Board, w.Fields = board, of
			var rows []Row
			for i, member := range members {
				r := Row{Place: int64(i + 1), Rank: int64(i + 1), Member: member, Score: scores[min(i, len(scores)-1)], ReachedAt: week.UnixMilli() + int64(i)}
				r.Tuple[0] = []int64{math.MaxInt64, math.MinInt64, 0, -1}[i%4]
				for f := 1; f < len(of); f++ {
					r.Tuple[f] = int64(i * f)
				}
				rows = append(rows, r)
			}
			rows = hidden(rows, 2, 3, 9, int64(len(rows)))
			copied := archived(t, s, first, w, rows)
			require.Equal(t, of, copied.Fields)
			found := all(t, s, copied.ID)
			require.Equal(t, rows, found)
			for i := range rows {
				require.Equal(t, math.Float64bits(rows[i].Score), math.Float64bits(found[i].Score))
			}
			require.NoError(t, s.Verify(t.Context(), copied.ID))
			some, err := s.Members(t.Context(), copied.ID, append([]string{"nobody", "\x00", "\x00"}, members...))
			require.NoError(t, err)
			require.Equal(t, rows, some)
			places, err := s.PlacesOf(t.Context(), copied.ID, append([]string{"nobody", "\x00"}, members...))
			require.NoError(t, err)
			require.Len(t, places, len(rows))
			for i := range rows {
				require.Equal(t, rows[i].Place, places[rows[i].Member])
			}
		}
	})
}

func TestRowsOfAWindowAreReadByPlaceAndByScore(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		rows := ranked(1, 1000)
		w := archived(t, s, first, final(0), rows)
		read := func(from, to int64) []Row {
			got, err := s.Rows(t.Context(), w.ID, from, to)
			require.NoError(t, err)
			return got
		}
		require.Equal(t, rows[:10], read(1, 10))
		require.Equal(t, rows[994:], read(995, 1004))
		require.Empty(t, read(1001, 1010))

		for _, score := range []float64{rows[0].Score, rows[1].Score + 0.01, rows[500].Score, rows[999].Score, 0, math.MaxFloat64, -1} {
			var least, above int64
			for i := range rows {
				if rows[i].Score >= score {
					least++
				}
				if rows[i].Score > score {
					above++
				}
			}
			got, err := s.PlaceOfScore(t.Context(), w.ID, score)
			require.NoError(t, err)
			require.Equal(t, Places{above, least}, got, score)
		}

		none := archived(t, s, first, backup(0, 1), nil)
		require.Empty(t, all(t, s, none.ID))
		place, err := s.PlaceOfScore(t.Context(), none.ID, 0)
		require.NoError(t, err)
		require.Zero(t, place)
	})
}

func TestACopyThatIsNotThereIsGone(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		begun, err := s.Begin(t.Context(), first, final(10))
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), ranked(1, 10)))
		for _, id := range []int64{begun.Window().ID, 999} {
			_, err := s.Rows(t.Context(), id, 1, 10)
			require.ErrorIs(t, err, ErrGone)
			_, err = s.Members(t.Context(), id, []string{"m7919"})
			require.ErrorIs(t, err, ErrGone)
			_, err = s.PlaceOfScore(t.Context(), id, 1)
			require.ErrorIs(t, err, ErrGone)
			for _, err := range s.Each(t.Context(), id) {
				require.ErrorIs(t, err, ErrGone)
			}
		}
	})
}

// SQLite does not keep the sign of 0, so checksums ignore it.
func TestAZeroHasOneChecksum(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		rows := ranked(1, 2)
		rows[1].Score = math.Copysign(0, -1)
		require.NoError(t, s.Verify(t.Context(), archived(t, s, first, final(0), rows).ID))
	})
}
