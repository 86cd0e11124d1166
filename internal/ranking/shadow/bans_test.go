package shadow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
)

// shownAndHidden returns a window's members in its two sets.
func (f *fixture) shownAndHidden(t testing.TB, n int) (shown, hidden []string) {
	t.Helper()
	set, beside := f.Store.Keys().Both(f.Piece.Windows[n].Listing())
	return f.Client.ZRange(t.Context(), set, 0, -1).Val(), f.Client.ZRange(t.Context(), beside, 0, -1).Val()
}

// The rebuild is paused, and its hold lapses. A ban is carried out. The rebuild takes the hold again and
// swaps: the swap would show the banned member again.
func TestASwapByBansThatHaveChangedChangesNothing(t *testing.T) {
	rankingtest.Alone(t)
	f, r := rebuilding(t)
	f.held(t, r)
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	version, err := r.takeBans(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Release(t.Context()))
	require.NoError(t, f.Store.Ban(t.Context(), ranking.Ban{Member: "u1"}))
	f.held(t, r)
	f.Unchanged(t, func() { require.ErrorIs(t, r.swap(t.Context(), p, version), ErrUnheld) })
}

// There is no ban, then one that the shadow takes over, then none: the version is the same as at first.
func TestABanThatWasTakenBackBetweenTwoLooksIsTakenBack(t *testing.T) {
	rankingtest.Alone(t)
	f := someone(t)
	r := f.rebuild(t, f.Member("u1", 7), f.Member("u2", 3))
	require.NoError(t, r.Prepare(t.Context()))
	require.Zero(t, r.taken)
	require.NoError(t, f.Store.Ban(t.Context(), ranking.Ban{Member: "u1"}))
	require.NoError(t, r.Prepare(t.Context()))
	require.NotEmpty(t, r.taken.Live)
	was := r.taken
	require.NoError(t, r.Prepare(t.Context()))
	require.Equal(t, was, r.taken, "it was taken once more")
	require.NoError(t, f.Store.Unban(t.Context(), ranking.Ban{Member: "u1"}))
	r.taken.Live = "" // as if the version was read before the ban, and the bans after it
	f.held(t, r)
	_, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	for n := range f.Piece.Windows {
		shown, hidden := f.shownAndHidden(t, n)
		require.Equal(t, []string{"u2", "u1"}, shown)
		require.Empty(t, hidden)
	}
}
