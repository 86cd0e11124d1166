package boards

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

func (f *fixture) closed(t *testing.T) []Closed {
	t.Helper()
	all, err := f.Closed(t.Context(), func(w ledger.Window) (time.Duration, bool) { return 24 * time.Hour, w.Period == "weekly" }, 0)
	require.NoError(t, err)
	return all
}

func TestAWindowStaysLongerOnEveryShardAndNeverShorter(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			f := overdue(t, of, 40)
			was := f.closed(t)
			require.Len(t, was, 1)
			for _, s := range f.Shards() {
				require.NoError(t, f.client.PExpireAt(t.Context(), s.Keys().Window(&was[0].Window), time.UnixMilli(was[0].Expires)).Err())
			}
			later := time.UnixMilli(was[0].Expires).Add(48 * time.Hour)
			n, err := f.Stay(t.Context(), "archive", was, later)
			require.NoError(t, err)
			require.EqualValues(t, of, n)
			now := f.closed(t)
			require.Equal(t, later.UnixMilli(), now[0].Expires)
			for _, s := range f.Shards() { // the key lives a day longer than the listing
				left := f.client.PTTL(t.Context(), s.Keys().Window(&now[0].Window)).Val()
				require.InDelta(t, time.Until(later.Add(24*time.Hour)).Seconds(), left.Seconds(), 10)
			}

			n, err = f.Stay(t.Context(), "topic", was, later.Add(time.Hour))
			require.NoError(t, err)
			require.Zero(t, n, "it is listed otherwise by now")
			n, err = f.Stay(t.Context(), "topic", now, later.Add(-time.Hour))
			require.NoError(t, err)
			require.Zero(t, n, "nothing is shortened, although it stays for two places")
			require.Equal(t, now[0].Expires, f.closed(t)[0].Expires)
			top, err := f.Top(t.Context(), f.board, f.window, 0, 50)
			require.NoError(t, err)
			require.Len(t, top.Standings, 40)

			// Once the window is in both places it expires at the original time.
			is := func(*Closed) bool { return true }
			release := func(place string, least time.Time) time.Time {
				require.NoError(t, f.Release(t.Context(), place, f.closed(t), is, least))
				return time.UnixMilli(f.closed(t)[0].Expires)
			}
			require.NoError(t, f.Release(t.Context(), "archive", now, func(*Closed) bool { return false }, time.Now()))
			require.Equal(t, later.UnixMilli(), release("archive", time.Now()).UnixMilli(), "it stays for the topic")
			require.Equal(t, was[0].Expires, release("topic", time.Now()).UnixMilli())
			for _, s := range f.Shards() {
				left := f.client.PTTL(t.Context(), s.Keys().Window(&now[0].Window)).Val()
				require.InDelta(t, time.Until(time.UnixMilli(was[0].Expires).Add(24*time.Hour)).Seconds(), left.Seconds(), 10)
			}
			_, err = f.Stay(t.Context(), "topic", f.closed(t), later)
			require.NoError(t, err)
			least := later.Add(-time.Hour)
			require.Equal(t, least.UnixMilli(), release("topic", least).UnixMilli(), "another place has time to have it stay")
			_, err = f.Stay(t.Context(), "topic", f.closed(t), later)
			require.NoError(t, err)
			require.NoError(t, f.Release(t.Context(), "topic", nil, is, least), "it isn't listed any more")
			stays, err := f.Shards()[0].Stays(t.Context())
			require.NoError(t, err)
			require.Empty(t, stays)
		})
	}
}

// Redis may be rolled back by a restart.
func TestAServerThatRestartsIsNotTheSameServer(t *testing.T) {
	server := testenv.PrivateRedis(t)
	client := server.Client(t)
	f := newFixture(t, client, "lb", 3, codec.Readable)
	require.NoError(t, f.OnSameServers(t.Context(), func() error { return nil }))
	calls := 0
	require.ErrorIs(t, f.OnSameServers(t.Context(), func() error {
		calls++
		server.Restart(server.Dump())
		require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, time.Minute, 10*time.Millisecond)
		return nil
	}), ranking.ErrServerChanged)
	require.Equal(t, 1, calls)
}
