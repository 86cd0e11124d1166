package ranking

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// dropEU drops the board eu and returns the number of windows dropped.
func (f *fixture) dropEU(t testing.TB) int64 {
	t.Helper()
	f.joined(t)
	v := f.view(t)
	found, err := v.SurveyBoards(t.Context(), func(name string) bool { return name == "eu" })
	require.NoError(t, err)
	n, err := v.DropBoards(t.Context(), found, 0, nil)
	require.NoError(t, err)
	return n
}

// both adds m to global and eu, and returns the indexes of eu's windows.
func (f *fixture) both(t testing.TB, m ledger.Member) (eu []int) {
	t.Helper()
	f.piece = f.newPiece()
	eu = f.of("eu")
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{{Windows: append([]int{0, 1, 2}, eu...), Members: []ledger.Member{m}}}
	f.mustApply(t)
	return eu
}

func TestADroppedWindowIsNeitherShownNorOpenedAgainHalfway(t *testing.T) {
	f := limited(t, 6)
	eu := f.both(t, f.member("u1", 5))
	keys := []string{f.key(eu[0]), f.key(eu[1]), f.key(eu[2])}
	require.Equal(t, int64(3), f.client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.dropEU(t))
	require.Zero(t, f.dropEU(t), "there is nothing more")
	require.Zero(t, f.client.Exists(t.Context(), keys...).Val())
	b, err := f.store.Top(t.Context(), "eu", f.window(0), 0, 10)
	require.NoError(t, err)
	require.False(t, b.Listed)

	was := f.points(t, 0)["u1"]
	f.both(t, f.member("u1", 7))
	require.Equal(t, was+7, f.points(t, 0)["u1"], "other boards go on")
	require.Zero(t, f.client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())

	// There is room again, and the board's next window opens as usual.
	f.piece = f.newPiece()
	next := f.of("eu")[0]
	f.piece.Windows[next].Name = "2100-W01"
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	f.piece.Groups = []ledger.Group{{Windows: []int{next}, Members: []ledger.Member{f.member("u1", 1)}}}
	f.mustApply(t)
	require.Equal(t, int64(4), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())

	// A dropped window's entry stays until the window would be over.
	_, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.Dropped()).Val())
	name := f.piece.Windows[next+1].Listing()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Dropped(), name, time.Now().Add(-RetireAfter).UnixMilli()-1000).Err())
	_, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), f.client.HLen(t.Context(), f.store.keys.Dropped()).Val())

	// The entry over:<period> isn't a dropped window, and stays.
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Dropped(), "over:weekly", "1000").Err())
	_, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1000", f.client.HGet(t.Context(), f.store.keys.Dropped(), "over:weekly").Val())
}

func TestBoardsAreDroppedFromARedisThatIsFull(t *testing.T) {
	f, _ := private(t)
	eu := f.both(t, f.member("u1", 5))
	keys := []string{f.key(eu[0]), f.key(eu[1]), f.key(eu[2])}
	f.joined(t)
	f.set(t, "maxmemory", "1")
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	_, _, err := f.store.Apply(t.Context(), &f.piece)
	require.ErrorContains(t, err, "OOM ")
	require.Equal(t, int64(3), f.dropEU(t))
	require.Zero(t, f.client.Exists(t.Context(), keys...).Val())
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.Windows()).Val())
	require.Equal(t, int64(3), f.client.HLen(t.Context(), f.store.keys.Dropped()).Val())
}

func TestADropOfBoardsWithoutARightChangesNothing(t *testing.T) {
	for _, command := range []string{"unlink", "hset", "hdel", "hget", "exists"} {
		t.Run(command, func(t *testing.T) {
			f, server := private(t)
			f.both(t, f.member("u1", 5))
			f.joined(t)
			v := f.view(t)
			found, err := v.SurveyBoards(t.Context(), func(name string) bool { return name == "eu" })
			require.NoError(t, err)
			v.stores[shard].client = f.as(t, server, "~*", "+@all", "-"+command)
			f.unchanged(t, func() {
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
	eu := f.both(t, f.member("u1", 5))
	name := f.piece.Windows[eu[0]].Listing()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Dropped(), name, "1").Err())
	f.both(t, f.member("u1", 5)) // the window is listed, so it still counts
	require.NoError(t, f.client.Unlink(t.Context(), f.key(eu[0])).Err())
	f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	require.Equal(t, ledger.Lost, f.apply(t).Outcome)
	require.Equal(t, int64(3), f.dropEU(t))
	f.both(t, f.member("u1", 5))
	require.Zero(t, f.client.Exists(t.Context(), f.key(eu[0]), f.key(eu[1]), f.key(eu[2])).Val())
	require.Len(t, f.client.HGet(t.Context(), f.store.keys.Dropped(), name).Val(), 13, "until it would be over")
}

// Redis's clock jumped ahead, so a window that had just started was over by it, and apply.lua stored its
// start as over:<period>.
func TestWhatAWrongClockLeftOutIsForgottenOnceTheClockIsRight(t *testing.T) {
	for _, retired := range []bool{false, true} {
		f := fixed(t)
		over := func(period string, start int64) {
			t.Helper()
			require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Dropped(), "over:"+period, start).Err())
		}
		over("weekly", f.piece.Windows[0].Start) // the current window
		over("monthly", f.piece.Windows[1].End)  // the next window
		past := f.piece.Windows[2].Start - 366*day
		over("yearly", past) // a past window, which is over by another retention
		over("season", 1)
		if retired {
			f.store = f.storeOf(t, func(c *Config) {
				c.Periods["yearly"] = Period{Layout: c.Periods["yearly"].Layout, Retention: 20 * 366 * 24 * time.Hour}
			})
			_, err := f.store.Retire(t.Context())
			var ahead *ClockError
			require.ErrorAs(t, err, &ahead)
			require.Len(t, ahead.Windows, 2)
			require.Equal(t, "weekly:"+f.piece.Windows[0].Name, ahead.Windows[1])
			_, err = f.store.Retire(t.Context())
			require.NoError(t, err, "once")
			require.Equal(t, map[string]string{"over:yearly": strconv.FormatInt(past, 10), "over:season": "1"}, f.client.HGetAll(t.Context(), f.store.keys.Dropped()).Val())
		}
		f.add(t, f.member("u1", 5))
		require.Len(t, f.client.HGetAll(t.Context(), f.store.keys.Windows()).Val(), 3, "every window that hasn't ended begins, retired %v", retired)
	}
}

// By the time zone data of the consumers, the month started an hour earlier than by the test's.
func TestAWindowThatAWrongClockLeftOutIsFoundByItsSettledBorders(t *testing.T) {
	f, w := zonedFixture(t)
	w.Start -= time.Hour.Milliseconds()
	_, err := f.store.Settle(t.Context(), f.bordersOf(w), false)
	require.NoError(t, err)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Dropped(), "over:monthly", w.Start).Err())
	var ahead *ClockError
	require.ErrorAs(t, f.store.forget(t.Context()), &ahead)
	require.Equal(t, []string{"monthly:" + w.Name}, ahead.Windows)
	require.Empty(t, f.client.HGetAll(t.Context(), f.store.keys.Dropped()).Val())
}
