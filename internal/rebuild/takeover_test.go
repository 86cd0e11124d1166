package rebuild

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
)

func TestARebuildThatKeepsNothingPausesNobody(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		was := p.boards()
		p.spoil()
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Zero(t, r.Holds)
		require.Zero(t, r.Held)
		require.Equal(t, was, p.boards())
		p.nothingLeft()
	})
}

// The log is read from offset 5 on, and the window starts before that.
func TestAWindowThatIsListedMeanwhileAndHasToBeKeptHasItPauseAfterAll(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		const day = 24 * 60 * 60 * 1000
		now := time.Now().UnixMilli()
		for name := range p.redis.HGetAll(t.Context(), p.key("windows")).Val() {
			require.NoError(t, p.redis.HDel(t.Context(), p.key("windows"), name).Err())
			require.NoError(t, p.redis.Del(t.Context(), p.key(name)).Err())
		}
		p.job.From = replay.From{Offsets: map[string]int64{topic + "/0": 5}}
		p.job.Watch.Reading = func(int64, func() int64) func() {
			name := "global:weekly:old"
			require.NoError(t, p.redis.HSet(t.Context(), p.key("windows"), name, listed(now-30*day, now-23*day, now+30*day)).Err())
			require.NoError(t, p.redis.ZAdd(t.Context(), p.key(name), redis.Z{Score: 1, Member: "m"}).Err())
			return func() {}
		}
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Positive(t, r.Holds)
		require.Equal(t, int64(1), p.redis.Exists(t.Context(), p.key("global:weekly:old")).Val())
		p.nothingLeft()
	})
}
