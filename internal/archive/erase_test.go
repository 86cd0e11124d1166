package archive

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
)

func TestAnErasedMemberIsErasedFromEveryRevision(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	f.MakeFinal()
	a := f.archiver(nil)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	member := f.Rows()[7].Member
	score := f.Rows()[7].Score
	f.Reopen()
	f.Hide(member)
	f.MakeFinal()
	require.NoError(t, a.Pass(t.Context(), fence(1)))

	f.Erase(member)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	f.hasNot(member, 1)
	f.hasNot(member, 2)
	_, rows := f.archived(1)
	require.Equal(t, store.Row{Place: 8, Rank: 8}, rows[7], "the place says that a row was erased")

	// A Redis that went back has the member again, and the next leader reads the member's row.
	require.NoError(t, f.Redis.Del(t.Context(), f.Shard(member).Keys().Banned()).Err())
	require.NoError(t, f.Redis.ZAdd(t.Context(), f.Shard(member).Keys().Listed(f.Listed()), redis.Z{Score: score, Member: member}).Err())
	f.Reopen()
	f.MakeFinal()
	require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(2)))
	f.hasNot(member, 3)
}

func TestAnErasedMemberIsErasedFromABackup(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	a := f.archiver(nil)
	a.Interval = time.Hour
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	member := f.Rows()[7].Member
	f.Erase(member)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	f.hasNot(member, 0)
}

// A copy of a window that was sealed again is compared without the member.
func TestAnErasureIsNoDifferenceToWhatWasArchived(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(50)
	f.MakeFinal()
	require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(1)))
	f.GoBack()
	f.Erase(f.Rows()[7].Member)
	f.MakeFinal()
	require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(2)))
	first, _ := f.archived(1)
	require.EqualValues(t, 1, first.Erased)
	closed, err := f.Closed(t.Context(), finaltest.Always, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, closed[0].Revision, "its seal stays")
}

// hasNot requires that a copy of 50 members has no row of the member, and shows all others.
func (f *fixture) hasNot(member string, revision int64) {
	f.t.Helper()
	w, rows := f.archived(revision) // also verifies the copy
	require.NotZero(f.t, w.ID)
	require.Equal(f.t, []int64{49, 0, 1}, []int64{w.Members, w.Hidden, w.Erased}, "revision %d", revision)
	require.False(f.t, slices.ContainsFunc(rows, func(r store.Row) bool { return r.Member == member }))
}
