package inventory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/internal/redisconn"
)

func TestADroppedWindowIsNeitherShownNorOpenedAgainHalfway(t *testing.T) {
	f := limited(t, 6)
	eu := f.Both(t, f.Member("u1", 5))
	keys := []string{f.Key(eu[0]), f.Key(eu[1]), f.Key(eu[2])}
	require.Equal(t, int64(3), f.Client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.dropEU(t))
	require.Zero(t, f.dropEU(t), "there is nothing more")
	require.Zero(t, f.Client.Exists(t.Context(), keys...).Val())
	b, err := f.Top(t.Context(), "eu", f.Window(0))
	require.NoError(t, err)
	require.False(t, b.Listed)

	was := f.Points(t, 0)["u1"]
	f.Both(t, f.Member("u1", 7))
	require.Equal(t, was+7, f.Points(t, 0)["u1"], "other boards go on")
	require.Zero(t, f.Client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())

	// There is room again, and the board's next window opens as usual.
	f.Piece = f.NewPiece()
	next := f.Windows("eu")[0]
	f.Piece.Windows[next].Name = "2100-W01"
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	f.Piece.Groups = []ledger.Group{{Windows: []int{next}, Members: []ledger.Member{f.Member("u1", 1)}}}
	f.MustApply(t)
	require.Equal(t, int64(4), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())

	// A dropped window's entry stays until the window would be over.
	_, err = f.Store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Dropped()).Val())
	name := f.Piece.Windows[next+1].Listing()
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Dropped(), name, time.Now().Add(-ranking.RetireAfter).UnixMilli()-1000).Err())
	_, err = f.Store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), f.Client.HLen(t.Context(), f.Store.Keys().Dropped()).Val())

	// The entry over:<period> isn't a dropped window, and stays.
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Dropped(), "over:weekly", "1000").Err())
	_, err = f.Store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1000", f.Client.HGet(t.Context(), f.Store.Keys().Dropped(), "over:weekly").Val())
}

func TestBoardsAreDroppedFromARedisThatIsFull(t *testing.T) {
	in, _ := rankingtest.Private(t)
	f := &fixture{in}
	eu := f.Both(t, f.Member("u1", 5))
	keys := []string{f.Key(eu[0]), f.Key(eu[1]), f.Key(eu[2])}
	f.joined(t)
	require.NoError(t, f.Client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	_, _, err := f.Store.Apply(t.Context(), &f.Piece)
	require.ErrorContains(t, err, "OOM ")
	require.Equal(t, int64(3), f.dropEU(t))
	require.Zero(t, f.Client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val())
	require.Equal(t, int64(3), f.Client.HLen(t.Context(), f.Store.Keys().Dropped()).Val())
}

func TestADropOfBoardsWithoutARightChangesNothing(t *testing.T) {
	for _, command := range []string{"unlink", "hset", "hdel", "hget", "exists"} {
		t.Run(command, func(t *testing.T) {
			in, server := rankingtest.Private(t)
			f := &fixture{in}
			f.Both(t, f.Member("u1", 5))
			f.joined(t)
			v := f.view(t)
			found, err := v.SurveyBoards(t.Context(), func(name string) bool { return name == "eu" })
			require.NoError(t, err)
			v.stores[rankingtest.Shard] = ranking.Bare(f.As(t, server, "~*", "+@all", "-"+command), f.Prefix, rankingtest.Shard, rankingtest.Of, 20*time.Second)
			f.Unchanged(t, func() {
				_, err = v.DropBoards(t.Context(), found, 0, nil)
				require.Error(t, err)
				require.True(t, redisconn.IsMissingRight(err), err)
			})
			require.Equal(t, int64(3), f.dropEU(t))
		})
	}
}

// The state that a script would leave if it died midway.
func TestTheSameDropFinishesWhatWasDroppedHalfway(t *testing.T) {
	f := limited(t, 6)
	eu := f.Both(t, f.Member("u1", 5))
	name := f.Piece.Windows[eu[0]].Listing()
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Dropped(), name, "1").Err())
	f.Both(t, f.Member("u1", 5)) // the window is listed, so it still counts
	require.NoError(t, f.Client.Unlink(t.Context(), f.Key(eu[0])).Err())
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	require.Equal(t, ledger.Lost, f.Apply(t).Outcome)
	require.Equal(t, int64(3), f.dropEU(t))
	f.Both(t, f.Member("u1", 5))
	require.Zero(t, f.Client.Exists(t.Context(), f.Key(eu[0]), f.Key(eu[1]), f.Key(eu[2])).Val())
	require.Len(t, f.Client.HGet(t.Context(), f.Store.Keys().Dropped(), name).Val(), 13, "until it would be over")
}
