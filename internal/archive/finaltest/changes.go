package finaltest

import (
	"regexp"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// MakeFinal seals the window.
func (w *World) MakeFinal() {
	w.t.Helper()
	due, err := w.Due(w.t.Context(), time.Now(), time.Now(), Always, 0)
	require.NoError(w.t, err)
	sealed, err := w.Seal(w.t.Context(), map[ledger.Partition]int64{Points: 10}, due)
	require.NoError(w.t, err)
	require.Equal(w.t, []string{w.Listed()}, sealed.Final)
}

// Reopen takes the seal back.
func (w *World) Reopen() {
	w.t.Helper()
	closed, err := w.Closed(w.t.Context(), Always, 0)
	require.NoError(w.t, err)
	_, err = w.Unseal(w.t.Context(), closed[0].Window, time.Now(), "a test")
	require.NoError(w.t, err)
}

var revision = regexp.MustCompile(` =\d+`)

// GoBack leaves the window as it was before the seal, as a dump that was loaded does.
func (w *World) GoBack() {
	w.t.Helper()
	for _, s := range w.Shards() {
		k := s.Keys()
		listing := w.Redis.HGet(w.t.Context(), k.Windows(), w.Listed()).Val()
		require.NoError(w.t, w.Redis.HSet(w.t.Context(), k.Windows(), w.Listed(), revision.ReplaceAllString(listing, "")).Err())
		require.NoError(w.t, w.Redis.HDel(w.t.Context(), k.Final(), w.Listed()).Err())
	}
}

// Hide takes a member out of what is shown.
func (w *World) Hide(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Ban(w.t.Context(), ranking.Ban{Member: member}))
}

// Unhide shows a member again whom Hide has hidden.
func (w *World) Unhide(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Unban(w.t.Context(), ranking.Ban{Member: member}))
}

// Erase removes a member from Redis for good.
func (w *World) Erase(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Ban(w.t.Context(), ranking.Ban{Member: member, Erased: true}))
}

// Expires is when the shards let go of the window.
func (w *World) Expires() time.Time {
	w.t.Helper()
	all, err := w.Closed(w.t.Context(), Always, 0)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return time.UnixMilli(all[0].Expires)
}

var lastWord = regexp.MustCompile(`\d+$`)

// Expire has every shard let go of the window at another time.
func (w *World) Expire(at time.Time) {
	w.t.Helper()
	for _, s := range w.Shards() {
		key := s.Keys().Windows()
		if listing := w.Redis.HGet(w.t.Context(), key, w.Listed()).Val(); listing != "" {
			require.NoError(w.t, w.Redis.HSet(w.t.Context(), key, w.Listed(), lastWord.ReplaceAllString(listing, strconv.FormatInt(at.UnixMilli(), 10))).Err())
		}
	}
}
