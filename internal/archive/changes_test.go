package archive

import (
	"regexp"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
)

// What happens to the window behind an archiver's back.

// hide takes a member out of what is shown.
func (f *fixture) hide(member string) {
	f.t.Helper()
	require.NoError(f.t, f.of(member).Ban(f.t.Context(), ranking.Ban{Member: member}))
}

func (f *fixture) reopen() {
	f.t.Helper()
	closed, err := f.Closed(f.t.Context(), always, 0)
	require.NoError(f.t, err)
	_, err = f.Unseal(f.t.Context(), closed[0].Window, time.Now(), "a test")
	require.NoError(f.t, err)
}

// lose is what an operator's DEL does.
func (f *fixture) lose() {
	f.t.Helper()
	require.NoError(f.t, f.client.Del(f.t.Context(), f.Shards()[1].Keys().Listed(f.name())).Err())
}

var revision = regexp.MustCompile(` =\d+`)

// unsealInSilence leaves the window as it was before the seal, as a dump that was loaded does.
func (f *fixture) unsealInSilence() {
	f.t.Helper()
	for _, s := range f.Shards() {
		k := s.Keys()
		listing := f.client.HGet(f.t.Context(), k.Windows(), f.name()).Val()
		require.NoError(f.t, f.client.HSet(f.t.Context(), k.Windows(), f.name(), revision.ReplaceAllString(listing, "")).Err())
		require.NoError(f.t, f.client.HDel(f.t.Context(), k.Final(), f.name()).Err())
	}
}

var lastWord = regexp.MustCompile(`\d+$`)

// expire has every shard let go of the window at a time.
func (f *fixture) expire(at time.Time) {
	f.t.Helper()
	for _, s := range f.Shards() {
		k := s.Keys()
		listing := f.client.HGet(f.t.Context(), k.Windows(), f.name()).Val()
		if listing != "" {
			require.NoError(f.t, f.client.HSet(f.t.Context(), k.Windows(), f.name(), lastWord.ReplaceAllString(listing, strconv.FormatInt(at.UnixMilli(), 10))).Err())
		}
	}
}
