package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACopyGoesOnWhereItWasLeft(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, url string) {
		rows := ranked(1, 3000)
		w := final(3000)
		begun, err := s.Begin(t.Context(), first, w)
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), rows[:1000]))

		// The next leader is in another process.
		s = open(t, url)
		second := Fence{2, "second"}
		went, err := s.Begin(t.Context(), second, w)
		require.NoError(t, err)
		require.Equal(t, begun.Window().ID, went.Window().ID)
		require.EqualValues(t, 1000, went.Written())
		// It does not know whether an earlier call succeeded, and repeats it.
		require.NoError(t, went.Append(t.Context(), rows[500:1500]))
		require.NoError(t, went.Append(t.Context(), rows[500:1500]))
		require.EqualValues(t, 1500, went.Written())
		require.NoError(t, went.Append(t.Context(), rows[1500:]))
		require.NoError(t, went.Finish(t.Context()))
		require.NoError(t, went.Finish(t.Context()))
		require.NoError(t, went.Append(t.Context(), rows[:10]), "they are in")
		require.Equal(t, rows, all(t, s, went.Window().ID))

		// A leader that begins the same revision again finds it complete, whatever its seal.
		w.SealedAt = w.SealedAt.Add(1)
		w.Members = 7
		there, err := s.Begin(t.Context(), second, w)
		require.NoError(t, err)
		require.True(t, there.Whole())
		require.Equal(t, went.Window(), there.Window())
	})
}

func TestRowsThatDifferFromWhatIsInAreRefused(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		rows := ranked(1, 100)
		begun, err := s.Begin(t.Context(), first, final(100))
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), rows[:50]))
		for name, change := range map[string]func(*Row){
			"member": func(r *Row) { r.Member = "another" },
			"points": func(r *Row) { r.Tuple[0]++ },
			"score":  func(r *Row) { r.Score -= 0.0625 },
			"time":   func(r *Row) { r.ReachedAt++ },
		} {
			changed := ranked(40, 60)
			change(&changed[10])
			require.ErrorIs(t, begun.Append(t.Context(), changed), ErrDiffers, name)
		}
		require.EqualValues(t, 50, begun.Written(), "all or none")
		// The copy is dropped and started again.
		require.NoError(t, begun.Discard(t.Context()))
		require.NoError(t, begun.Discard(t.Context()))
		require.ErrorIs(t, begun.Append(t.Context(), rows[50:]), ErrGone)
		require.ErrorIs(t, begun.Finish(t.Context()), ErrInvalid)
		again := archived(t, s, first, final(0), rows)
		require.NotEqual(t, begun.Window().ID, again.ID)
		require.Equal(t, rows, all(t, s, again.ID))
	})
}

func TestRowsThatNoCopyCanHaveAreRefused(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		begun, err := s.Begin(t.Context(), first, final(100))
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), ranked(1, 10)))
		change := func(from, to int64, with func([]Row)) []Row {
			rows := ranked(from, to)
			with(rows)
			return rows
		}
		none := func([]Row) {}
		for name, rows := range map[string][]Row{
			"a gap":            change(12, 20, none),
			"a gap within":     change(11, 20, func(r []Row) { r[3].Place++ }),
			"too many":         change(11, 101, none),
			"place 0":          change(0, 20, none),
			"a greater score":  change(11, 20, func(r []Row) { r[5].Score += 100 }),
			"one above":        change(11, 20, func(r []Row) { r[0].Score += 100 }),
			"no member":        change(11, 20, func(r []Row) { r[5].Member = "" }),
			"no UTF-8":         change(11, 20, func(r []Row) { r[5].Member = "\xff" }),
			"a long member":    change(11, 20, func(r []Row) { r[5].Member = string(make([]byte, 257)) }),
			"a time too early": change(11, 20, func(r []Row) { r[5].ReachedAt = -1 }),
		} {
			require.ErrorIs(t, begun.Append(t.Context(), rows), ErrInvalid, name)
		}
		require.ErrorIs(t, begun.Finish(t.Context()), ErrInvalid, "it isn't complete")
		require.EqualValues(t, 10, begun.Written())
		require.NoError(t, begun.Append(t.Context(), ranked(11, 100)))
		require.NoError(t, begun.Finish(t.Context()))
	})
}

func TestABackupReplacesTheOneBeforeAndAFinalWindowAllOfThem(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		s.removedAtOnce = 100 // so that the rows of the first copy are removed in three steps
		one := archived(t, s, first, backup(0, 1), ranked(1, 250))
		two := archived(t, s, first, backup(0, 2), ranked(1, 100))
		_, err := s.Rows(t.Context(), one.ID, 1, 10)
		require.ErrorIs(t, err, ErrGone)
		found, err := s.Window(t.Context(), "global", "weekly", "2026-W47")
		require.NoError(t, err)
		require.Equal(t, two, found)

		// A copy that was started and not continued.
		begun, err := s.Begin(t.Context(), first, backup(100, 3))
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), ranked(1, 10)))
		newer, err := s.Begin(t.Context(), first, backup(100, 4))
		require.NoError(t, err)
		require.ErrorIs(t, begun.Append(t.Context(), ranked(11, 20)), ErrGone)
		require.NoError(t, newer.Append(t.Context(), ranked(1, 5)))
		require.Equal(t, 5, states(t, s, false), "also the rows of two backups as they were read")

		last := archived(t, s, first, final(0), ranked(1, 50))
		require.ErrorIs(t, newer.Append(t.Context(), ranked(6, 10)), ErrGone)
		second := final(0)
		second.Revision, second.ReopenedWhy = 2, "a referee's decision"
		second = archived(t, s, first, second, ranked(1, 51))
		removed, err := s.Sweep(t.Context(), first)
		require.NoError(t, err)
		require.Equal(t, 6, removed)
		windows, err := s.Windows(t.Context(), Filter{All: true}, Place{}, 100)
		require.NoError(t, err)
		require.Equal(t, []Window{second, last}, windows, "earlier revisions stay")
		var rows int64
		require.NoError(t, s.one(t.Context(), `SELECT count(*) FROM standings`, nil, &rows))
		require.EqualValues(t, 101, rows)
		earlier, err := s.Revision(t.Context(), "global", "weekly", "2026-W47", 1)
		require.NoError(t, err)
		require.Equal(t, last, earlier)
		require.Equal(t, 2, states(t, s, true))
	})
}

// states counts the copies.
func states(t *testing.T, s *Store, whole bool) (n int) {
	t.Helper()
	windows, err := s.Windows(t.Context(), Filter{All: true}, Place{}, 100)
	require.NoError(t, err)
	for _, w := range windows {
		if (w.State == Whole) == whole {
			n++
		}
	}
	return n
}

// A member that occurs twice is detected while the copy is written, or at its end.
func TestAMemberTwiceIsFoundBeforeACopyIsWhole(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, _ string) {
		for name, twice := range map[string]int{"in one call": 15, "in two": 5} {
			rows := ranked(1, 20)
			rows[18].Member = rows[twice].Member
			begun, err := s.Begin(t.Context(), first, final(20))
			require.NoError(t, err)
			require.NoError(t, begun.Append(t.Context(), rows[:10]))
			if err = begun.Append(t.Context(), rows[10:]); err == nil {
				err = begun.Finish(t.Context())
			}
			require.ErrorIs(t, err, ErrDiffers, name)
			require.ErrorContains(t, err, "a member or a rank twice")
			require.Equal(t, 0, states(t, s, true))
			require.NoError(t, begun.Discard(t.Context()))
		}
		archived(t, s, first, final(0), ranked(1, 20))
	})
}
