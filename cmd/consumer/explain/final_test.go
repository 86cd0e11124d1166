package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// seals makes the window final on every shard by the script. Redis's clock is before 2100, so it passes a
// lateness that makes up for that.
func (w *world) seals(t *testing.T, revision int64) {
	t.Helper()
	listing := ""
	shards := w.boards(t).Shards()
	for _, s := range shards {
		listing = max(listing, w.redis.HGet(t.Context(), s.Keys().Windows(), theWindow).Val())
	}
	l, err := ranking.ParseListing(theWindow, listing)
	require.NoError(t, err)
	l.Final = 0
	for _, s := range shards {
		sealed, err := s.Seal(t.Context(), map[ledger.Partition]int64{}, []ranking.Sealing{{
			Name: theWindow, Listing: w.redis.HGet(t.Context(), s.Keys().Windows(), theWindow).Val(), As: l.Text(),
			Lateness: -100 * 365 * 24 * time.Hour,
		}})
		require.NoError(t, err)
		require.Equal(t, []ranking.Sealed{{Name: theWindow, Revision: revision}}, sealed)
	}
}

func TestWhatCameAfterAWindowWasFinalIsNoDifference(t *testing.T) {
	w := newWorld(t, "STANDINGS_REDIS_SHARDS=3")
	w.earns(t, at(1), "Kalobi", 5)
	w.earns(t, at(2), "Tanubo", 6)
	w.counts(t)
	w.seals(t, 1)
	w.earns(t, at(3), "Kalobi", 7)
	w.earns(t, at(4), "Ritiki", 8)
	w.counts(t)

	r := w.explains(t, 0, "global", "Kalobi")
	require.Equal(t, []string{"counted", "final"}, r.results())
	require.Equal(t, counts{Counted: 1, Final: 1}, r.Counts)
	require.Equal(t, int64(5), *r.Redis.Points)
	require.Contains(t, r.kinds(), "final")
	r = w.explains(t, 0, "global", "Ritiki")
	require.Equal(t, []string{"final"}, r.results())
	require.Nil(t, r.Redis)

	// A standing that was changed nevertheless is a difference.
	score := w.score(t, "Kalobi")
	w.scored(t, 1.25, "Kalobi")
	require.NotNil(t, w.explains(t, 1, "global", "Kalobi").Agree)
	w.scored(t, score, "Kalobi")

	// A reopened window lacks the events that arrived while it was final until it is rebuilt, also if
	// it is sealed again.
	reopens := func() {
		for _, s := range w.boards(t).Shards() {
			_, err := s.Unseal(t.Context(), theWindow, time.Now(), "case 7")
			require.NoError(t, err)
		}
	}
	reopens()
	w.earns(t, at(5), "Kalobi", 100)
	w.counts(t)
	for _, note := range []string{"reopened", "final"} {
		r = w.explains(t, 0, "global", "Kalobi")
		require.Equal(t, []string{"counted", "final", "counted"}, r.results())
		require.Equal(t, int64(105), *r.Redis.Points)
		require.Contains(t, r.kinds(), note)
		if note == "reopened" {
			w.seals(t, 2)
		}
	}
	w.earns(t, at(6), "Kalobi", 1000)
	w.counts(t)
	reopens()
	w.seals(t, 3)
	r = w.explains(t, 0, "global", "Kalobi")
	require.Equal(t, []string{"counted", "final", "counted", "final"}, r.results())

	// Without the seal's ledger the answer is unknown.
	key := w.home(t, "Kalobi").Keys()
	for field := range w.redis.HGetAll(t.Context(), key.Final()).Val() {
		if field != theWindow {
			require.NoError(t, w.redis.HDel(t.Context(), key.Final(), field).Err())
		}
	}
	r = w.explains(t, 1, "global", "Kalobi")
	require.Nil(t, r.Agree)
	require.Contains(t, r.kinds(), "seal_lost")
	require.NoError(t, w.redis.Del(t.Context(), key.Final()).Err())
	r = w.explains(t, 1, "global", "Kalobi")
	require.Nil(t, r.Agree)
	require.Contains(t, r.kinds(), "seal_lost")
}
