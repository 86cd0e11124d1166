package shadow

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/rankingtest"
)

// opens applies a piece to a store that opens a board's week.
func (f *fixture) opens(t *testing.T, s keyed, board string) ledger.Window {
	t.Helper()
	p := f.NewPiece()
	p.Windows = p.Windows[:1]
	p.Windows[0].Board = board
	p.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.Member("u1", 3)}}}
	a, _, err := s.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	return p.Windows[0]
}

// Retire may remove a window while a piece opens another, so that the number of windows stays the same.
func TestListingsAreReadAgainWhereAWindowMayHaveBeenRetired(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	gone := now - 2*day - 2000 // it ended two days ago
	f.list(t, f.Store, "global:weekly:gone", rankingtest.Listed(gone-8*day, gone-day, gone))
	require.NoError(t, r.Prepare(t.Context()))
	n, err := f.Store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	live := f.opens(t, f.Store, "live") // the shadow does not open this window
	require.NoError(t, f.Client.HSet(t.Context(), r.shadow.Keys().Ledger(), "events/3", fmt.Sprint(f.Next+10)).Err())
	f.Next += 10
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Len(t, p.Windows, 4)
	require.False(t, f.Client.HExists(t.Context(), f.Store.Keys().Windows(), live.Listing()).Val(), "it is dropped")
	require.Zero(t, f.Client.Exists(t.Context(), f.Store.Keys().Window(&live)).Val())
}

func TestAWindowThatIsKeptAndLostAfterTheListingsWereReadIsRefused(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	read := ledger.Origin{Offset: 5, Time: f.Piece.Windows[0].Start}
	for i := range f.Piece.Windows {
		read.Time = min(read.Time, f.Piece.Windows[i].Start)
	}
	kept := f.Store.Keys().Listed("global:weekly:kept")
	f.list(t, f.Store, "global:weekly:kept", rankingtest.Listed(read.Time-1, now-day, now+50*day))
	require.NoError(t, f.Client.ZAdd(t.Context(), kept, redis.Z{Score: 3, Member: "u"}).Err())
	require.NoError(t, f.Client.HSet(t.Context(), r.shadow.Keys().Origin(), "events/3", read.String()).Err())
	require.NoError(t, r.Prepare(t.Context()))
	f.Del(t, kept)
	f.held(t, r)
	f.Unchanged(t, func() {
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "Redis has lost global:weekly:kept")
	})
}

func TestAListingThatGetsShorterWhileItIsReadIsReadAgain(t *testing.T) {
	f, r := rebuilding(t)
	live, shadow, now, err := r.both(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Client.HDel(t.Context(), f.Store.Keys().Windows(), f.Piece.Windows[0].Listing()).Err())
	_, _, err = r.listed(t.Context(), &live, &shadow, now)
	require.ErrorIs(t, err, errFewer)
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	strays := 0
	for _, w := range p.Windows {
		if w.stray {
			strays++
			require.Equal(t, f.Piece.Windows[0].Listing(), w.Listing())
		}
	}
	require.Equal(t, 1, strays)
}
