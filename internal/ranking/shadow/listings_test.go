package shadow

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// opens applies a piece to a store that opens a board's week.
func (f *fixture) opens(t *testing.T, s keyed, board string) ledger.Window {
	t.Helper()
	p := f.newPiece()
	p.Windows = p.Windows[:1]
	p.Windows[0].Board = board
	p.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 3)}}}
	a, _, err := s.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	return p.Windows[0]
}

func TestWindowsThatAreOpenedAfterTheListingsWereReadAreSwappedToo(t *testing.T) {
	f, r := rebuilding(t)
	require.NoError(t, r.Prepare(t.Context()))
	read := r.read
	require.Len(t, read.names, 3)
	both := f.opens(t, f.store, "both")
	f.opens(t, r.shadow, "both")
	f.next += 10
	live := f.opens(t, f.store, "live")
	shadow := f.opens(t, r.shadow, "shadow")
	f.next += 10
	require.NoError(t, f.client.ZAdd(t.Context(), f.store.Keys().Window(&both), redisZ(5, "tampered")).Err())
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.NotSame(t, read, r.read)
	require.Len(t, p.Windows, 6)
	require.Equal(t, int64(1), f.client.ZCard(t.Context(), f.store.Keys().Window(&both)).Val())
	require.Zero(t, f.client.Exists(t.Context(), f.store.Keys().Window(&live)).Val())
	require.False(t, f.client.HExists(t.Context(), f.store.Keys().Windows(), live.Listing()).Val())
	require.Equal(t, int64(1), f.client.Exists(t.Context(), f.store.Keys().Window(&shadow)).Val())
	require.NotEmpty(t, f.listing(t, shadow))
	f.mustApply(t)
}

// Retire may remove a window while a piece opens another, so that the number of windows stays the same.
func TestListingsAreReadAgainWhereAWindowMayHaveBeenRetired(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	gone := now - 2*day - 2000 // it ended two days ago
	f.list(t, f.store, "global:weekly:gone", listed(gone-8*day, gone-day, gone))
	require.NoError(t, r.Prepare(t.Context()))
	n, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	live := f.opens(t, f.store, "live") // the shadow does not open this window
	require.NoError(t, f.client.HSet(t.Context(), r.shadow.Keys().Ledger(), "events/3", fmt.Sprint(f.next+10)).Err())
	f.next += 10
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Len(t, p.Windows, 4)
	require.False(t, f.client.HExists(t.Context(), f.store.Keys().Windows(), live.Listing()).Val(), "it is dropped")
	require.Zero(t, f.client.Exists(t.Context(), f.store.Keys().Window(&live)).Val())
}

func TestAWindowThatIsKeptAndLostAfterTheListingsWereReadIsRefused(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	read := ledger.Origin{Offset: 5, Time: f.piece.Windows[0].Start}
	for i := range f.piece.Windows {
		read.Time = min(read.Time, f.piece.Windows[i].Start)
	}
	kept := f.store.Keys().Listed("global:weekly:kept")
	f.list(t, f.store, "global:weekly:kept", listed(read.Time-1, now-day, now+50*day))
	require.NoError(t, f.client.ZAdd(t.Context(), kept, redis.Z{Score: 3, Member: "u"}).Err())
	require.NoError(t, f.client.HSet(t.Context(), r.shadow.Keys().Origin(), "events/3", read.String()).Err())
	require.NoError(t, r.Prepare(t.Context()))
	f.del(t, kept)
	f.held(t, r)
	f.unchanged(t, func() {
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "Redis has lost global:weekly:kept")
	})
}

func TestAListingThatGetsShorterWhileItIsReadIsReadAgain(t *testing.T) {
	f, r := rebuilding(t)
	live, shadow, now, err := r.both(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.client.HDel(t.Context(), f.store.Keys().Windows(), f.piece.Windows[0].Listing()).Err())
	_, _, err = r.listed(t.Context(), &live, &shadow, now)
	require.ErrorIs(t, err, errFewer)
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	strays := 0
	for _, w := range p.Windows {
		if w.stray {
			strays++
			require.Equal(t, f.piece.Windows[0].Listing(), w.Listing())
		}
	}
	require.Equal(t, 1, strays)
}
