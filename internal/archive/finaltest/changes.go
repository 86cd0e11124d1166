package finaltest

import (
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

// Reopen reopens the window.
func (w *World) Reopen() {
	w.t.Helper()
	closed, err := w.Closed(w.t.Context(), Always, 0)
	require.NoError(w.t, err)
	_, err = w.Unseal(w.t.Context(), closed[0].Window, time.Now(), "a test")
	require.NoError(w.t, err)
}

// GoBack restores the window's state before the seal, like a Redis that loads an older dump.
func (w *World) GoBack() {
	w.t.Helper()
	for _, s := range w.Shards() {
		k := s.Keys()
		w.relist(s, func(l *ranking.Listing) { l.Final = 0 })
		require.NoError(w.t, w.Redis.HDel(w.t.Context(), k.Final(), w.Listed()).Err())
	}
}

// Hide hides a member.
func (w *World) Hide(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Ban(w.t.Context(), ranking.Ban{Member: member}))
}

// Unhide shows a member again after Hide.
func (w *World) Unhide(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Unban(w.t.Context(), ranking.Ban{Member: member}))
}

// Erase permanently removes a member from Redis.
func (w *World) Erase(member string) {
	w.t.Helper()
	require.NoError(w.t, w.Shard(member).Ban(w.t.Context(), ranking.Ban{Member: member, Erased: true}))
}

// Expires returns the window's expiry in the listing.
func (w *World) Expires() time.Time {
	w.t.Helper()
	all, err := w.Closed(w.t.Context(), Always, 0)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return time.UnixMilli(all[0].Expires)
}

// Expire sets the window's expiry on every shard.
func (w *World) Expire(at time.Time) {
	w.t.Helper()
	for _, s := range w.Shards() {
		w.relist(s, func(l *ranking.Listing) { l.Expires = at.UnixMilli() })
	}
}

// relist changes a shard's listing of the window, if the shard lists it.
func (w *World) relist(s *ranking.Store, change func(*ranking.Listing)) {
	w.t.Helper()
	key := s.Keys().Windows()
	text := w.Redis.HGet(w.t.Context(), key, w.Listed()).Val()
	if text == "" {
		return
	}
	listing, err := ranking.ParseListing(w.Listed(), text)
	require.NoError(w.t, err)
	change(&listing)
	require.NoError(w.t, w.Redis.HSet(w.t.Context(), key, w.Listed(), listing.Text()).Err())
}
