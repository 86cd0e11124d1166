package ranking

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

func TestAListingGoesTwoDaysAfterItsWindowIsOver(t *testing.T) {
	f := someone(t)
	now := time.Now().UnixMilli()
	list := func(name string, expires int64) {
		listing := entry(now-90*day, now-80*day, expires)
		require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, listing).Err())
	}
	list("global:weekly:due", now-2*day-1000)
	list("global:weekly:due2", now-30*day)
	list("global:weekly:soon", now-2*day+60_000)
	list("global:weekly:kept", now-30*day) // its expiry was removed by hand
	require.NoError(t, f.client.Do(t.Context(), "zadd", f.store.keys.Listed("global:weekly:kept"), 1, "u").Err())
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), "global:weekly:odd", "nonsense").Err())
	for i := range 1200 { // more than a page
		list(fmt.Sprint("eu:weekly:", i), now-3*day)
	}

	dropped, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1202, dropped)
	left := f.client.HKeys(t.Context(), f.store.keys.Windows()).Val()
	require.ElementsMatch(t, []string{"global:weekly:soon", "global:weekly:kept", "global:weekly:odd",
		f.piece.Windows[0].Listing(), f.piece.Windows[1].Listing(), f.piece.Windows[2].Listing()}, left)
	dropped, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.Equal(t, ledger.Applied, f.apply(t).Outcome)
}

func TestAListingThatChangedSinceItWasReadStays(t *testing.T) {
	f := someone(t)
	w := f.piece.Windows[0].Listing()
	dropped, err := f.store.retire(t.Context(), []string{w, "1 2 3"})
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.NotEmpty(t, f.listing(t, f.piece.Windows[0]))
}

// A member with a window keeps the name. The name is removed two days after the last window.
func TestANameGoesWithTheLastWindow(t *testing.T) {
	f := fixed(t)
	f.called(t, "u1", "Ada", 50)
	f.called(t, "u2", "Bob", 50)
	two := time.Now().Add(-RetireAfter).UnixMilli()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Names(), "u1", fmt.Sprintf("50 %d Ada", two-2000), "u2", fmt.Sprintf("50 %d Bob", two+3_600_000)).Err())
	dropped, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.Equal(t, map[string]string{"u1": "Ada", "u2": "Bob"}, f.names(t, "u1", "u2"), "no window has gone")
	f.list(t, "global:weekly:2020-W01", entry(1, 2, two-2000))
	dropped, err = f.store.Retire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, dropped)
	require.Equal(t, map[string]string{"u2": "Bob"}, f.names(t, "u1", "u2"))
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
